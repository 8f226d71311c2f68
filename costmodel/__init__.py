if __name__ != "tilewright.costmodel":
    raise ImportError("import this folder as tilewright.costmodel; it is no top-level package")
