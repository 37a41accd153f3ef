"""Ctrl-C while the device compiles or works: KeyboardInterrupt, and the process goes on."""

import fresh_process


def test_ctrl_c():
    out = fresh_process.run(
        """
        import signal, threading

        # A shell may have started us with SIGINT ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)

        def interrupt_soon():
            threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

        x = torch.rand(20000).to("tpu")
        torch.tpu.synchronize()

        def queue(first, n=30):
            return [x[: first + i].exp() for i in range(n)]

        ys = queue(100, 200)
        interrupt_soon()
        try:
            torch.tpu.synchronize()
            print("synchronize finished")
        except KeyboardInterrupt:
            print("synchronize interrupted")
        torch.tpu.synchronize()
        torch.testing.assert_close(ys[-1].cpu(), x[:299].cpu().exp())

        class Mine(Exception):
            pass

        def handler(*_):
            raise Mine("handler's own")

        signal.signal(signal.SIGINT, handler)
        ys = queue(1000, 200)
        interrupt_soon()
        try:
            ys[-1].cpu()
            print("read finished")
        except Mine as e:
            print("read interrupted:", e)
        assert (x[:3] + 1).shape == (3,)
        """,
        TORCH_TPU_CACHE="off",
    )
    assert out.stdout.split("\n")[:2] == [
        "synchronize interrupted",
        "read interrupted: handler's own",
    ]
    assert "\\r" not in out.stderr and "waiting" not in out.stderr, "progress is for terminals only"
