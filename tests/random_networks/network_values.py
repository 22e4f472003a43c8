"""Layers of a random network that move, resize, scale or normalise values."""

__all__ = ["ValueLayers"]


class ValueLayers:
    """Part of the maker of a network (`network_generator.py`), which has the shapes, the random numbers and `add`."""

    def value(self, x: str) -> str | None:
        """A layer of one value: a factor, a cut, a reshaped or transformed image."""
        rng, (h, w, c) = self.rng, self.shapes[x]
        kind = rng.choice(["Scaling", "Threshold", "Softmax", "Reshape", "Transformation", "Transformation"])
        if x in self.flat and kind != "Scaling":
            return None
        if kind == "Scaling":
            return self.add("Scaling", (x,), (h, w, c), Factor=rng.choice([0.5, -1.25, 0.1]), **self.precision())
        if kind == "Threshold":  # a step, which only exact values pass in the same way
            return self.add("Threshold", ("sp",), self.spec.size, Threshold=0.5) if self.tables or self.bits < 0 else None
        if kind == "Softmax":
            return self.add("Softmax", (x,), (h, w, c))
        if kind == "Reshape":
            return self.add("Reshape", (x,), (1, h * w, c), Dims=f"{h * w} 1 -1")
        return self.transformation(x)

    def transformation(self, x: str) -> str:
        rng, (h, w, c) = self.rng, self.shapes[x]
        name = rng.choice(["RangeAffine", "Rescale", "PadCrop", "Flip", "Reshape"])
        keys: dict[str, object] = {"Transformation": f"{name}Transformation"}
        shape = (h, w, c)
        if name == "RangeAffine":
            keys |= {"FirstOperator": "Minus", "FirstValue": 0.25, "SecondOperator": "Divides", "SecondValue": 0.5}
        elif name in ("Rescale", "PadCrop"):
            shape = (h + rng.choice([0, 1, 3]), w + rng.choice([0, 2]), c)
            keys |= {"Width": shape[1], "Height": shape[0]} | ({"BorderType": "ConstantBorder"} if name == "PadCrop" else {})
        elif name == "Flip":
            keys |= {"HorizontalFlip": rng.choice([0, 1]), "VerticalFlip": 1}
        else:
            shape = (w, h, c)
            keys |= {"NbRows": w, "NbCols": h}
        return self.add("Transformation", (x,), shape, **keys)

    def spread(self, x: str) -> str | None:
        h, w, c = self.shapes[x]
        if 4 * h * w > 400 or x in self.flat:
            return None
        return self.add("Unpool", (x,), (2 * h, 2 * w, c), Pooling="Average", PoolSize=2, Stride=2, Mapping__Size=1)

    def padding(self, x: str) -> str | None:
        rng, (h, w, c) = self.rng, self.shapes[x]
        top, left, bottom, right = (rng.randint(-1, 2) for _ in range(4))
        if h + top + bottom < 1 or w + left + right < 1 or min(h, w) < 3:
            return None
        return self.add(
            "Padding",
            (x,),
            (h + top + bottom, w + left + right, c),
            TopPadding=top,
            LeftPadding=left,
            BottomPadding=bottom,
            RightPadding=right,
        )

    def resize(self, x: str) -> str | None:
        rng, (h, w, c) = self.rng, self.shapes[x]
        height, width = rng.choice([(2 * h, 2 * w), (h + 1, 2 * w), (max(1, h // 2), w), (h, w + 3)])
        if height * width > 400:
            return None
        return self.add(
            "Resize",
            (x,),
            (height, width, c),
            OutputWidth=width,
            OutputHeight=height,
            Mode=rng.choice(["NearestNeighbor", "Bilinear", "BilinearTF"]),
        )

    def transpose(self, x: str) -> str | None:
        shape = self.shapes[x]
        if max(shape) > 24:
            return None
        perm = self.rng.choice([(1, 0, 2), (0, 2, 1), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
        dims = (shape[1], shape[0], shape[2])  # X Y C
        x_, y, c = (dims[axis] for axis in perm)
        return self.add("Transpose", (x,), (y, x_, c), Perm=f"{perm[0]} {perm[1]} {perm[2]} 3")

    def dropout(self, x: str) -> str:
        return self.add("Dropout", (x,), self.shapes[x])

    def normalization(self, x: str) -> str:
        """Layers without integers: islands of floating point."""
        kind = self.rng.choice(["LRN", "Normalize"])
        keys = {"Quantize": 0} if self.bits > 0 else {}
        return self.add(kind, (x,), self.shapes[x], **({"Norm": "L2"} if kind == "Normalize" else {}), **keys)
