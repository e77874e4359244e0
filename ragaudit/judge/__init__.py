"""The only place a model is asked: claims, a matrix of verdicts, and the metrics that follow from them."""
