"""What `seatrial explain` knows beside the pages of rules: kinds, engines, and error texts of other tools.

Everything is generated from the product's own tables, or from `errors/`, which lists error texts as their tools print
them. Reads no file of the user and rehearses nothing.
"""
