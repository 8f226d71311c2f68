if __name__ != "tilewright.codegen":
    raise ImportError("import this folder as tilewright.codegen; it is no top-level package")
