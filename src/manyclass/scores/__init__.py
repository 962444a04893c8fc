"""Out-of-sample scores of the training set: folds, cross-fitting, leave-one-out."""
