//! Threads that live as long as a cell and run what they are told, round by round.

#![allow(unsafe_code)] // jobs that borrow

use crate::affinity;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// What a thread runs once.
pub(in crate::cases) type Job<'a> = Box<dyn FnOnce() + Send + 'a>;

/// The threads; none are left after [`dismiss`](Self::dismiss).
pub(in crate::cases) struct Crew {
    threads: Vec<(Sender<Job<'static>>, JoinHandle<()>)>,
    /// One message for each job that is over: whether it went well.
    over: Receiver<bool>,
}

impl Crew {
    /// A thread for each of `cpus`, pinned to it where one is named.
    ///
    /// # Errors
    /// When the system has no more threads.
    pub(in crate::cases) fn new(cpus: &[Option<usize>]) -> Result<Self, String> {
        let (tell, over) = channel();
        let threads = cpus.iter().map(|&cpu| {
            let (send, jobs) = channel::<Job<'static>>();
            let tell = tell.clone();
            let work = move || {
                // Not pinned is slower or noisier, and seen as such; the work is the same.
                let _ = cpu.map(affinity::pin_to);
                for job in jobs {
                    // The job is gone, and all that it borrowed, before this is told.
                    let well = catch_unwind(AssertUnwindSafe(job)).is_ok();
                    if tell.send(well).is_err() {
                        return;
                    }
                }
            };
            let thread = thread::Builder::new().spawn(work);
            thread
                .map(|thread| (send, thread))
                .map_err(|e| e.to_string())
        });
        Ok(Crew {
            threads: threads.collect::<Result<_, _>>()?,
            over,
        })
    }

    /// Runs each of `jobs` on a thread of its own and `here` on this one, until all are over.
    ///
    /// # Errors
    /// When a job panicked, or there is no thread for it.
    ///
    /// # Panics
    /// As `here` does, when the jobs are over.
    pub(in crate::cases) fn run<T>(
        &mut self,
        jobs: Vec<Job<'_>>,
        here: impl FnOnce() -> T,
    ) -> Result<T, String> {
        if jobs.len() > self.threads.len() {
            return Err(format!(
                "{} threads for {} jobs",
                self.threads.len(),
                jobs.len()
            ));
        }
        let mut waiting = Waiting {
            over: &self.over,
            left: 0,
            well: true,
        };
        for (job, (thread, _)) in jobs.into_iter().zip(&self.threads) {
            // SAFETY: only the lifetime changes. `waiting` is dropped before this call returns or
            // unwinds, and lets it end only when every job that was sent has told that it is over;
            // what was borrowed outlives the call. A job that cannot be sent is dropped here.
            let job = unsafe { std::mem::transmute::<Job<'_>, Job<'static>>(job) };
            if thread.send(job).is_err() {
                return Err("a thread is gone".to_owned());
            }
            waiting.left += 1;
        }
        let answer = here();
        waiting.wait();
        if waiting.well {
            Ok(answer)
        } else {
            Err("a helping thread panicked".to_owned())
        }
    }

    /// Ends the threads, whose caches are flushed then.
    ///
    /// # Errors
    /// When one had panicked outside of a job.
    pub(in crate::cases) fn dismiss(&mut self) -> Result<(), String> {
        for (jobs, thread) in self.threads.drain(..) {
            drop(jobs);
            thread.join().map_err(|_| "a thread panicked".to_owned())?;
        }
        Ok(())
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        // A thread that panicked has printed why.
        let _ = self.dismiss();
    }
}

/// Waits for the jobs that were sent.
struct Waiting<'a> {
    over: &'a Receiver<bool>,
    left: usize,
    well: bool,
}

impl Waiting<'_> {
    fn wait(&mut self) {
        while self.left > 0 {
            match self.over.recv() {
                Ok(well) => self.well &= well,
                // All threads are gone, and their jobs with them.
                Err(_) => self.well = false,
            }
            self.left -= 1;
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn jobs_borrow_and_are_over_when_run_returns() {
        let mut crew = Crew::new(&[None; 3]).expect("threads");
        let sum = AtomicUsize::new(0);
        for _ in 0..100 {
            let count = || {
                sum.fetch_add(1, Ordering::Relaxed);
            };
            let job = || Box::new(count) as Job<'_>;
            let seven = crew.run(vec![job(), job(), job()], || 7);
            assert_eq!(seven, Ok(7));
        }
        assert_eq!(sum.load(Ordering::Relaxed), 300);
        assert!(
            crew.run(vec![Box::new(|| panic!("on purpose"))], || ())
                .is_err()
        );
        assert_eq!(crew.run(vec![], || 1), Ok(1), "the crew goes on");
    }

    #[test]
    fn a_panic_here_waits_for_the_jobs_too() {
        let mut crew = Crew::new(&[None]).expect("a thread");
        let done = AtomicUsize::new(0);
        let job: Job<'_> = Box::new(|| {
            thread::sleep(std::time::Duration::from_millis(20));
            done.store(1, Ordering::Relaxed);
        });
        let here = catch_unwind(AssertUnwindSafe(|| {
            crew.run(vec![job], || panic!("on purpose"))
        }));
        assert!(here.is_err());
        assert_eq!(done.load(Ordering::Relaxed), 1);
    }
}
