"""Runs a call on PyTorch's CPU and writes it as a case.

A tensor argument is written with its storage if it is a view; two arguments that share a storage
share it in the case too.
"""

import math

import numpy as np
import torch

aten = torch.ops.aten


def family(make):
    """Marks the function that makes the cases of one file."""
    make.is_family = True
    return make


class Host:
    """A zero-dim CPU tensor among tensors of the device."""

    def __init__(self, value, dtype):
        self.tensor = torch.tensor(value, dtype=dtype)


_formulas: dict[int, tuple[torch.Tensor, str]] = {}


def mod(dtype, sizes, m, n, b=0, s=1.0) -> torch.Tensor:
    """Element i is ((i * m) mod n + b) * s: as good as random for small n, and told in a word."""
    count = math.prod(sizes) * (2 if dtype.is_complex else 1)
    values = ((torch.arange(count) * m % n) + b).double() * s
    if dtype.is_complex:
        out = torch.view_as_complex(values.view(*sizes, 2)).to(dtype)
    else:
        out = values.to(dtype).view(sizes)
        assert torch.equal(out.double().view(-1), values), "the formula isn't exact in this type"
    storage = out.untyped_storage()
    if storage.nbytes():
        _formulas[storage.data_ptr()] = (out, f"mod({m}, {n}, {b}, {s!r})")
    return out


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def ints(values) -> str:
    return "[" + ", ".join(str(int(v)) for v in values) + "]"


def number(value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, complex):
        return f"({value.real!r}, {value.imag!r})"
    return repr(value)


def real_text(value: float, dtype: torch.dtype) -> str:
    if math.isnan(value):
        return "nan"
    if abs(value) < 1e6 and value == int(value):
        return "-0.0" if value == 0 and math.copysign(1, value) < 0 else str(int(value))
    if dtype == torch.float32:
        text = str(np.float32(value))
        assert np.float32(float(text)) == np.float32(value)
        return text
    return repr(value)


def data(t: torch.Tensor) -> str:
    """The elements in logical order."""
    known = _formulas.get(t.untyped_storage().data_ptr() if t.numel() else 0)
    if (
        known
        and t.is_contiguous()
        and known[0].dtype == t.dtype
        and torch.equal(known[0].view(-1), t.view(-1))
    ):
        return known[1]
    flat = t.resolve_conj().resolve_neg().reshape(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).reshape(-1)
    if flat.dtype == torch.bool:
        words = [str(int(v)) for v in flat.tolist()]
    elif not flat.is_floating_point():
        words = [str(v) for v in flat.tolist()]
    else:
        words = [real_text(v, flat.dtype) for v in flat.double().tolist()]
    if len(words) > 4 and len(set(words)) == 1:
        return f"all({words[0]})"
    return "{" + " ".join(words) + "}"


def whole(t: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A storage as one dimension of the tensor's type, or of another."""
    dtype = dtype or t.dtype
    count = t.untyped_storage().nbytes() // dtype.itemsize
    return torch.empty(0, dtype=dtype).set_(t.untyped_storage(), 0, (count,), (1,))


class Copies:
    """Copies of tensors on copies of their storages: what PyTorch may write to."""

    def __init__(self):
        self.storages = {}

    def __call__(self, value):
        if isinstance(value, (list, tuple)):
            return type(value)(self(v) for v in value)
        if isinstance(value, Host):
            return value.tensor
        if not isinstance(value, torch.Tensor):
            return value
        storage = value.untyped_storage()
        key = (storage.data_ptr(), storage.nbytes()) if storage.nbytes() else id(value)
        if key not in self.storages:
            self.storages[key] = storage.clone()
        out = torch.empty(0, dtype=value.dtype)
        out.set_(self.storages[key], value.storage_offset(), value.size(), value.stride())
        return torch._neg_view(out) if value.is_neg() else out.conj() if value.is_conj() else out


class Family:
    def __init__(self):
        self.statements: list[str] = []
        self.count = 0
        self.names: set[str] = set()
        self.op = ""

    def __call__(
        self, name, op, *args, row="", golden=None, ulp=0, rtol=0, atol=0, any_zero=False,
        error=None, seed=None, any_of=(), **kwargs,
    ):  # fmt: skip
        """One case. `error`: (code, text). `any_of`: results that aren't checked."""
        assert name not in self.names, name
        self.names.add(name)
        schema = op._schema
        named = dict(zip((a.name for a in schema.arguments), args, strict=False)) | kwargs
        copies = Copies()
        given = {k: copies(v) for k, v in named.items()}
        lines = self.arguments(schema, named)
        if seed:
            lines.append(f"seed {seed[0]} {seed[1]}")
        if error:
            lines.append(f'error "{error[0]}" "{error[1]}"')
        else:
            result = (golden or op)(**given)
            lines += self.results(schema, result, any_of, golden is not None)
            lines += self.changes(schema, named, given)
        if ulp or rtol or atol or any_zero:
            words = [f"{k} {v!r}" for k, v in dict(ulp=ulp, rtol=rtol, atol=atol).items() if v]
            lines.append(" ".join(["tolerance", *words, *(["any_zero"] if any_zero else [])]))
        head = f"op row {row} {schema}" if row else f"op {schema}"
        if head != self.op:
            self.statements += ["", head]
            self.op = head
        self.statements += [f"case {name}", *("  " + x for x in lines)]
        self.count += 1

    def tensors(self, schema, named):
        """(name of its own storage, tensor) of each tensor argument."""
        for arg in schema.arguments:
            value = named.get(arg.name)
            if isinstance(value, torch.Tensor):
                yield arg.name, value
            elif isinstance(value, (list, tuple)):
                for k, v in enumerate(value):
                    if isinstance(v, torch.Tensor):
                        yield f"{arg.name}.{k}", v

    def storage_names(self, schema, named):
        """Storages that need a statement of their own, and the name of each tensor's."""
        users: dict = {}
        for name, t in self.tensors(schema, named):
            key = t.untyped_storage().data_ptr() if t.untyped_storage().nbytes() else name
            users.setdefault(key, []).append((name, t))
        shared, names = {}, {}
        for tensors in users.values():
            t = tensors[0][1]
            made = _formulas.get(t.untyped_storage().data_ptr())
            same_type = made is None or made[0].dtype == t.dtype
            plain = (
                len(tensors) == 1
                and same_type
                and t.is_contiguous()
                and t.storage_offset() == 0
                and t.untyped_storage().nbytes() == t.numel() * t.itemsize
                and not (t.is_conj() or t.is_neg())
            )
            own = tensors[0][0] if plain else f"s{len(shared)}"
            if not plain:
                shared[own] = t if same_type else made[0]
            for name, _ in tensors:
                names[name] = own
        return shared, names

    def arguments(self, schema, named) -> list[str]:
        shared, names = self.storage_names(schema, named)
        lines = []
        for own, t in shared.items():
            base = whole(t)
            lines.append(f"storage {own} {name_of(t.dtype)}{ints(base.shape)} {data(base)}")

        def tensor(name, v):
            if v is None:
                return "none"
            if isinstance(v, Host):
                return f"scalar {name_of(v.tensor.dtype)} {number(v.tensor.item())}"
            if not isinstance(v, torch.Tensor):
                return "wrapped " + number(v)
            own = names[name]
            if own not in shared:
                return f"{name_of(v.dtype)}{ints(v.shape)} {data(v)}"
            text = f"{own}{ints(v.shape)}"
            if not v.is_contiguous():
                text += f" strides {ints(v.stride())}"
            if v.storage_offset():
                text += f" offset {v.storage_offset()}"
            if v.dtype != shared[own].dtype:
                text += f" as {name_of(v.dtype)}"
            return text + (" conj" if v.is_conj() else "") + (" neg" if v.is_neg() else "")

        for arg in schema.arguments:
            if arg.name not in named:
                continue
            v, kind = named[arg.name], str(arg.type)
            if "Tensor" in kind and ("List" in kind or "[]" in kind):
                text = "[" + ", ".join(tensor(f"{arg.name}.{k}", t) for k, t in enumerate(v)) + "]"
            elif "Tensor" in kind:
                text = tensor(arg.name, v)
            elif v is None:
                text = "none"
            elif isinstance(v, torch.dtype):
                text = name_of(v)
            elif isinstance(v, str):
                text = f'"{v}"'
            elif isinstance(v, (list, tuple)):
                text = "[" + ", ".join(map(number, v)) + "]"
            elif kind in ("float", "Optional[float]"):
                text = number(float(v))
            else:
                text = number(v)
            lines.append(f"{arg.name} = {text}")
        return lines

    def results(self, schema, result, any_of, is_golden) -> list[str]:
        if len(schema.returns) == 1:
            result = (result,)
        if result is None:
            result = ()
        fresh = [i for i, r in enumerate(schema.returns) if r.alias_info is None]
        if is_golden and len(result) != len(fresh) and len(schema.returns) != 1:
            raise ValueError("a golden gives every result")
        lines = []
        for i in fresh:
            r = result[i]
            if isinstance(r, int):
                lines.append("-> any")
            elif i in any_of and isinstance(r, torch.Tensor):
                lines.append(f"-> any {name_of(r.dtype)}{ints(r.shape)}")
            elif r is None or not isinstance(r, torch.Tensor):
                lines.append("-> none")
            else:
                strides = "" if r.is_contiguous() else f" strides {ints(r.stride())}"
                lines.append(f"-> {name_of(r.dtype)}{ints(r.shape)}{strides} {data(r)}")
        return lines

    def changes(self, schema, named, given) -> list[str]:
        shared, names = self.storage_names(schema, named)
        before = dict(self.tensors(schema, named))
        writes = set()
        for arg in schema.arguments:
            if arg.alias_info is not None and arg.alias_info.is_write:
                writes.add(arg.name)
        lines, told = [], set()
        for name, t in self.tensors(schema, given):
            own = names.get(name)  # none: a CPU tensor or a number
            if own is None or own in told or t.untyped_storage().nbytes() == 0:
                continue
            dtype = shared[own].dtype if own in shared else t.dtype
            same = torch.equal(whole(before[name], torch.uint8), whole(t, torch.uint8))
            if same and name.split(".")[0] not in writes:
                continue
            told.add(own)
            lines.append(f"after {own} {data(whole(t, dtype))}")
        return lines
