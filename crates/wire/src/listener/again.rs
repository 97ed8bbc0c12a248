//! Self-wakes of a connection task: a task that wakes itself while it is being polled is polled again immediately,
//! without passing through the runtime's queue.
//!
//! hyper passes a request's body through a channel whose two ends are in one task, so each part of a body wakes the
//! task that is already running. A runtime takes that as more work than one thread can do: it queues the task and wakes
//! another thread, which for a short request costs as much as the request itself.
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

/// Receives the wakes of the work.
struct Ear {
    state: AtomicU8,
    runtime: Mutex<Waker>,
}

pub(super) async fn again<F: Future>(work: F) -> F::Output {
    let ear = Arc::new(Ear { state: AtomicU8::new(AT_REST), runtime: Mutex::new(Waker::noop().clone()) });
    let waker = Waker::from(ear.clone());
    let mut work = pin!(work);
    poll_fn(|cx| {
        ear.remember(cx.waker());
        for _ in 0..POLLS_MAX {
            ear.state.store(POLLED, Ordering::SeqCst); // wakes before this point are covered by this poll
            if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready(done);
            }
            if ear.state.swap(AT_REST, Ordering::SeqCst) & WOKEN == 0 {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

impl Ear {
    fn remember(&self, waker: &Waker) {
        self.runtime.lock().unwrap_or_else(PoisonError::into_inner).clone_from(waker); // skips identical wakers
    }
}

impl Wake for Ear {
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
    struct ListenerRuntime(AtomicUsize);

    impl Wake for ListenerRuntime {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl ListenerRuntime {
        fn told(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    /// Wakes itself in its first polls, then stays pending forever.
    fn restless(wakes: usize, polls: &AtomicUsize, last: &Mutex<Option<Waker>>) -> impl Future<Output = ()> {
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
    fn who_wakes_itself_is_polled_again_and_only_too_many_times_are_told() {
        for wakes in [0, 1, POLLS_MAX - 1, POLLS_MAX, POLLS_MAX + 1] {
            let (runtime, polls, last) = (Arc::new(ListenerRuntime::default()), AtomicUsize::new(0), Mutex::new(None));
            let waker = Waker::from(runtime.clone());
            let mut work = pin!(again(restless(wakes, &polls, &last)));
            assert!(work.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            assert_eq!(polls.load(Ordering::SeqCst), (wakes + 1).min(POLLS_MAX), "{wakes}");
            assert_eq!(runtime.told(), usize::from(wakes >= POLLS_MAX), "{wakes}");
        }
    }

    #[test]
    fn a_wake_from_outside_is_told_to_whoever_polled_last() {
        let (first, second) = (Arc::new(ListenerRuntime::default()), Arc::new(ListenerRuntime::default()));
        let (polls, last) = (AtomicUsize::new(0), Mutex::new(None));
        let mut work = pin!(again(restless(0, &polls, &last)));
        for runtime in [&first, &second] {
            assert!(work.as_mut().poll(&mut Context::from_waker(&Waker::from(runtime.clone()))).is_pending());
        }
        last.lock().unwrap().take().unwrap().wake();
        assert_eq!((first.told(), second.told()), (0, 1));
    }

    /// Wakes from another thread hit a poll at any point; a lost wake would leave the receiver waiting.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_is_lost() {
        const PASSES: usize = 50_000;
        let (there, mut here) = tokio::sync::mpsc::channel(1);
        let (back, mut again_there) = tokio::sync::mpsc::channel(1);
        let echo = tokio::spawn(again(async move {
            while let Some(pass) = here.recv().await {
                back.send(pass).await.unwrap();
            }
        }));
        for pass in 0..PASSES {
            there.send(pass).await.unwrap();
            assert_eq!(again_there.recv().await, Some(pass));
        }
        drop(there);
        echo.await.unwrap();
    }
}
