"""What every estimator does with its input: open it, check it, and return results where it lived."""
