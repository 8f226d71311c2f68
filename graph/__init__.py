if __name__ != "tilewright.graph":
    raise ImportError("import this folder as tilewright.graph; it is no top-level package")
