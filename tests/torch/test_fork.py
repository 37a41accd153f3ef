"""Forked children: CPU work goes on, device use raises and says to use spawn. Reports W1, W2."""

import fresh_process


def test_after_the_device_started():
    fresh_process.run(
        """
        x = torch.ones(4).to("tpu")
        y = x + x
        pid = os.fork()
        if pid == 0:
            ok = (torch.ones(3) @ torch.ones(3)).item() == 3.0
            torch.manual_seed(0)
            ok &= torch.tpu._is_in_bad_fork() and not torch.tpu.is_initialized()
            ok &= torch.tpu.memory_allocated() == 0
            for use in (lambda: x.cpu(), lambda: x + x, lambda: x.add_(1), lambda: x[0].item(),
                        lambda: torch.ones(2).to("tpu"), lambda: torch.empty(2, device="tpu"),
                        torch.tpu.synchronize, torch.tpu.init, lambda: torch.tpu.Event().record()):
                text = raised(use)
                ok &= text.startswith("RuntimeError") and "spawn" in text and "fork" in text
            del x, y  # dropping what the parent made touches nothing
            sys.exit(0 if ok else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert y.tolist() == [2.0] * 4
        """
    )


def test_before_the_device_started():
    """W1: asking for the device and forking before the first use leaves the child free to use
    it."""
    fresh_process.run(
        """
        assert torch.tpu.is_available() and torch.tpu.device_count() == 1
        torch.manual_seed(0)
        pid = os.fork()
        if pid == 0:
            x = torch.ones(4).to("tpu")
            sys.exit(0 if (x + x).tolist() == [2.0] * 4 else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert (torch.ones(4).to("tpu") + 1).tolist() == [2.0] * 4
        """
    )


def test_fork_while_threads_compile():
    """The child never waits for a lock that a thread of the parent held."""
    fresh_process.run(
        """
        x = torch.rand(1000).to("tpu")
        ys = [x[: i + 1].exp() for i in range(8)]
        pids = []
        for _ in range(4):
            pid = os.fork()
            if pid == 0:
                text = raised(lambda: ys[0].cpu())
                del ys, x
                os._exit(0 if "spawn" in text else 1)
            pids.append(pid)
        assert all(os.waitpid(p, 0)[1] == 0 for p in pids)
        assert [len(y.cpu()) for y in ys] == list(range(1, 9))
        """,
        timeout=60,
        TORCH_TPU_CACHE="off",
    )
