"""A kill at every file operation: what is left is whole, and goes on.

python -m tests.crash --points 500 --graph-kills 500        (make crash)
"""
