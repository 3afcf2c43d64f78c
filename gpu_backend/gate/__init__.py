"""What an arbiter and the executors and agents around it share: memory, bells and files. Who decides is not in here.

Between an arbiter and an executor: `orders` and `reports`, two pages of `words` in `sealed` memory; `right_of_way`, a
word of all executors of a device; `bell`, by which they wake each other up. Between an arbiter and its agent: `terms`,
the `roster` of a device, and what the arbiter leaves in its own directory, `tally` and `verdicts`.
"""
