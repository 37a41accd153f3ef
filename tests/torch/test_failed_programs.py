"""A program that fails (here: out of memory inside the plugin) is reported by whoever needs its
result, as that error, and the device goes on."""

import fresh_process


def test_out_of_memory_in_the_plugin():
    fresh_process.run(
        """
        import resource
        small = torch.ones(3).to("tpu")
        assert (small + small).tolist() == [2.0] * 3
        used = int(open("/proc/self/statm").read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), used + (1 << 30)))

        def fail():
            return torch.empty(1 << 32, dtype=torch.uint8, device="tpu") + 1

        def check(text):
            assert text.startswith("OutOfMemoryError"), text
            assert "aten::add.Tensor" in text and "4294967296" in text, text

        broken = []
        text = raised(lambda: broken.append(fail()) or torch.tpu.synchronize())
        check(text)  # at once, or at the synchronisation, once
        torch.tpu.synchronize()
        for t in broken:  # the tensor says the same whenever it is used
            check(raised(lambda: t[:3].tolist()))
            check(raised(lambda: (t[:3] * 2).cpu()))
            check(raised(lambda: t.add_(1)[:3].cpu()))
            t.untyped_storage().resize_(0)
        text = raised(fail)  # the program is known now: the call itself raises
        check(text)
        assert (small + small).tolist() == [2.0] * 3
        assert torch.tpu.memory_stats()["num_ooms"] >= 1
        """
    )
