if __name__ != "tilewright.runtime":
    raise ImportError("import this folder as tilewright.runtime; it is no top-level package")
