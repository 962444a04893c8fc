"""Findings and errata: what the five papers get right and wrong, on one page with ten figures."""
