"""What the paper published in its Table 1: regret after 10,000 rounds, the mean of ten trials.

Its two figures have no numbers in the text. Infinity stands for no privacy.
"""

import math

PUBLISHED: dict[str, dict[float, float]] = {
    "camelback": {math.inf: 519, 10.0: 775, 1.0: 1029, 0.1: 3324},
    "styblinski-tang": {math.inf: 885, 10.0: 1667, 1.0: 2680, 0.1: 4493},
    "michalewicz": {math.inf: 901, 10.0: 1558, 1.0: 2883, 0.1: 5002},
}
