"""Side-by-side runs of Gramian and scikit-learn: time, peak memory and accuracy in one table."""
