if __name__ != "tilewright.tuner":
    raise ImportError("import this folder as tilewright.tuner; it is no top-level package")
