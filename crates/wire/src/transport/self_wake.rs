//! Self-wakes of a connection task: a task that wakes itself while it is being polled is polled again immediately,
//! without passing through the runtime's queue.
//!
//! A protocol may pass a request's body through a channel whose two ends are in one task, so each part of a body wakes
//! the task that is already running. A runtime takes that as more work than one thread can do: it queues the task and
//! wakes another thread, which for a short request costs as much as the request itself.
//!
//! Guarantees: no wake is lost. A wake during a poll leads to another poll; any other wake, and one beyond `POLLS_MAX`,
//! goes to the runtime.
//!
//! ```text
//!           poll                    wake                        wake
//!   AT REST ────→ POLLED ───────────────→ POLLED + WOKEN      AT REST ────→ WOKEN, and the runtime is woken
//!      ↑____________│ pending                   │ polled again, or the runtime is woken
//! ```

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// After this many polls the task yields to others.
const POLLS_MAX: usize = 16;

const AT_REST: u8 = 0;
const POLLED: u8 = 1;
const WOKEN: u8 = 2;

/// The waker that the work gets.
struct WakeState {
    state: AtomicU8,
    runtime: Mutex<Waker>,
}

pub(super) async fn poll_again_on_self_wake<F: Future>(work: F) -> F::Output {
    let wakes = Arc::new(WakeState { state: AtomicU8::new(AT_REST), runtime: Mutex::new(Waker::noop().clone()) });
    let waker = Waker::from(wakes.clone());
    let mut work = pin!(work);
    poll_fn(|cx| {
        wakes.set_runtime_waker(cx.waker());
        for _ in 0..POLLS_MAX {
            wakes.state.store(POLLED, Ordering::SeqCst); // wakes before this point are covered by this poll
            if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready(done);
            }
            if wakes.state.swap(AT_REST, Ordering::SeqCst) & WOKEN == 0 {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

impl WakeState {
    fn set_runtime_waker(&self, waker: &Waker) {
        self.runtime.lock().unwrap_or_else(PoisonError::into_inner).clone_from(waker); // skips identical wakers
    }
}

impl Wake for WakeState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.fetch_or(WOKEN, Ordering::SeqCst) & POLLED == 0 {
            self.runtime.lock().unwrap_or_else(PoisonError::into_inner).wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts how often the runtime is woken.
    #[derive(Default)]
    struct CountingWaker(AtomicUsize);

    impl Wake for CountingWaker {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl CountingWaker {
        fn wakes(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    /// Wakes itself in its first polls, then stays pending forever.
    fn self_waking(wakes: usize, polls: &AtomicUsize, last: &Mutex<Option<Waker>>) -> impl Future<Output = ()> {
        poll_fn(move |cx| {
            let before = polls.fetch_add(1, Ordering::SeqCst);
            *last.lock().unwrap() = Some(cx.waker().clone());
            if before < wakes {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
    }

    #[test]
    fn a_self_wake_leads_to_a_poll_and_only_too_many_reach_the_runtime() {
        for wakes in [0, 1, POLLS_MAX - 1, POLLS_MAX, POLLS_MAX + 1] {
            let (runtime, polls, last) = (Arc::new(CountingWaker::default()), AtomicUsize::new(0), Mutex::new(None));
            let waker = Waker::from(runtime.clone());
            let mut work = pin!(poll_again_on_self_wake(self_waking(wakes, &polls, &last)));
            assert!(work.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            assert_eq!(polls.load(Ordering::SeqCst), (wakes + 1).min(POLLS_MAX), "{wakes}");
            assert_eq!(runtime.wakes(), usize::from(wakes >= POLLS_MAX), "{wakes}");
        }
    }

    #[test]
    fn a_wake_from_outside_reaches_the_runtime_that_polled_last() {
        let (first, second) = (Arc::new(CountingWaker::default()), Arc::new(CountingWaker::default()));
        let (polls, last) = (AtomicUsize::new(0), Mutex::new(None));
        let mut work = pin!(poll_again_on_self_wake(self_waking(0, &polls, &last)));
        for runtime in [&first, &second] {
            assert!(work.as_mut().poll(&mut Context::from_waker(&Waker::from(runtime.clone()))).is_pending());
        }
        last.lock().unwrap().take().unwrap().wake();
        assert_eq!((first.wakes(), second.wakes()), (0, 1));
    }

    /// Wakes from another thread hit a poll at any point; a lost wake would leave the receiver waiting.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_is_lost() {
        const PASSES: usize = 50_000;
        let (send, mut receive) = tokio::sync::mpsc::channel(1);
        let (send_back, mut receive_back) = tokio::sync::mpsc::channel(1);
        let echo = tokio::spawn(poll_again_on_self_wake(async move {
            while let Some(pass) = receive.recv().await {
                send_back.send(pass).await.unwrap();
            }
        }));
        for pass in 0..PASSES {
            send.send(pass).await.unwrap();
            assert_eq!(receive_back.recv().await, Some(pass));
        }
        drop(send);
        echo.await.unwrap();
    }
}
