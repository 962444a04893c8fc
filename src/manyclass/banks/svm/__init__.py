"""Support vector machines of all columns as one matrix."""
