"""A data set for workers, which import it by name."""

import torch


class Squares(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        assert not torch.tpu.is_initialized()
        return self.item(i)

    @staticmethod
    def item(i: int) -> tuple[torch.Tensor, int]:
        return torch.full((2,), float(i * i)), i
