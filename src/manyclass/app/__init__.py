"""What the command line does: tables in, models and tables out."""
