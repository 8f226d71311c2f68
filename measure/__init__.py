if __name__ != "tilewright.measure":
    raise ImportError("import this folder as tilewright.measure; it is no top-level package")
