package main

// version is the version of the binary, the wheel and the Python package; setup.py reads it from here.
const version = "0.1.0"
