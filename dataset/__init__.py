"""Readers of the training data, the small data sets that ship, and what builds them. Knows no trainer."""
