"""All that sees an answer: clients, custodians, sums, and the noise on them."""
