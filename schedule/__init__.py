"""Programs, schedule primitives, traces, knobs and schedule spaces."""

if __name__ != "tilewright.schedule":
    raise ImportError("import this folder as tilewright.schedule; it is no top-level package")
