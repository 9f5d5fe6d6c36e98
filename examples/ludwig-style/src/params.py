"""What is tried, and what holds where nothing else is requested."""

param2requests = {
    "hidden_size": [4, 8],
    "learning_rate": [0.1, 0.3, 1.0],
}

param2default = {
    "hidden_size": 8,
    "learning_rate": 0.3,
    "epochs": 20,
    "seeds": (1, 2),  # of the data, and of the weights
}

param2debug = {"epochs": 2}
