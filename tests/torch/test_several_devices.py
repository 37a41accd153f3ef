"""Four devices in one process, as TORCH_TPU_DEVICES=4 makes them of a CPU plugin."""

import fresh_process


def test_four_devices():
    fresh_process.run(
        """
        import io, threading
        assert torch.tpu.device_count() == torch.accelerator.device_count() == 4
        x = torch.arange(4.0).to("tpu:1")
        assert x.device == (x + x).device == torch.device("tpu:1")
        y = x.to("tpu:3")
        assert y.device.index == 3 and (y + 1).tolist() == [1.0, 2.0, 3.0, 4.0]
        text = raised(lambda: x + y)
        assert text.startswith("RuntimeError: Expected all tensors to be on the same device")
        assert "tpu:1" in text and "tpu:3" in text and "aten::add" in text

        with torch.tpu.device(2):
            assert torch.ones(2).to("tpu").device.index == 2
            assert torch.empty(1, device="tpu").device.index == 2
            assert torch.tpu.current_device() == torch.accelerator.current_device_index() == 2
        assert torch.tpu.current_device() == 0
        with torch.tpu.device_of(y):
            assert torch.tpu.current_device() == 3

        z = torch.empty(4, device="tpu:2")
        z.copy_(x)
        z[1:3].copy_(y[:2], non_blocking=True)
        assert z.tolist() == [0.0, 0.0, 1.0, 3.0]
        text = raised(lambda: torch.ones(1).to("tpu:4"))
        assert "tpu:4 does not exist: there are 4 devices" in text
        assert "tpu:4 does not exist" in raised(lambda: torch.tpu.set_device(4))

        assert torch.tpu.memory_allocated(1) >= 16 and torch.tpu.memory_allocated(0) == 0
        torch.tpu.synchronize(3)
        assert torch.tpu.get_device_properties(3).index == 3
        assert len(torch.tpu.default_generators) == 4
        torch.tpu.manual_seed_all(7)
        assert torch.tpu.get_rng_state(3).tolist() == torch.tpu.get_rng_state(0).tolist()

        f = io.BytesIO()
        torch.save(x, f)
        for where, index in ((None, 1), ("tpu:2", 2), ("tpu", 0)):
            f.seek(0)
            assert torch.load(f, map_location=where).device.index == index
        f.seek(0)
        assert torch.load(f, map_location={"tpu:1": "tpu:3"}).device.index == 3

        w = torch.ones(3).to("tpu:2").requires_grad_()
        (w * w).to("tpu:1").backward(torch.ones(3).to("tpu:1"))
        assert w.grad.device.index == 2 and w.grad.tolist() == [2.0] * 3

        seen = []
        def other_thread():
            torch.tpu.set_device(3)
            seen.append(torch.ones(1).tpu().device.index)
        thread = threading.Thread(target=other_thread)
        thread.start(); thread.join()
        assert seen == [3] and torch.tpu.current_device() == 0

        a, b = torch.tpu.Stream(1), torch.tpu.Stream(2)
        assert a.device.index == 1 and torch.tpu.current_stream(2).device.index == 2
        with torch.tpu.stream(b):
            assert torch.tpu.current_device() == 2
        event = torch.tpu.Event(device=1)
        event.record(a)
        b.wait_event(event)
        event.synchronize()
        """,
        TORCH_TPU_DEVICES="4",
    )
