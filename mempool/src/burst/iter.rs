//! Taking the values out of a burst one by one.

use super::Burst;
use super::put_back::put_back;
use crate::typed::Pooled;
use std::iter::FusedIterator;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::slice;

/// The values of a burst, by value, from either end. What is not taken is given back in runs.
#[must_use = "dropped at once, its values go straight back"]
pub struct IntoIter<T: Send + 'static, const N: usize> {
    /// `front..back` are written.
    values: [MaybeUninit<Pooled<T>>; N],
    front: usize,
    back: usize,
}

impl<T: Send + 'static, const N: usize> Iterator for IntoIter<T, N> {
    type Item = Pooled<T>;

    #[inline]
    fn next(&mut self) -> Option<Pooled<T>> {
        if self.front == self.back {
            return None;
        }
        let at = self.front;
        self.front += 1;
        // SAFETY: was within `front..back`, and is no longer.
        Some(unsafe { self.values[at].assume_init_read() })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.back - self.front;
        (len, Some(len))
    }
}

impl<T: Send + 'static, const N: usize> DoubleEndedIterator for IntoIter<T, N> {
    #[inline]
    fn next_back(&mut self) -> Option<Pooled<T>> {
        if self.front == self.back {
            return None;
        }
        self.back -= 1;
        // SAFETY: was within `front..back`, and is no longer.
        Some(unsafe { self.values[self.back].assume_init_read() })
    }
}

impl<T: Send + 'static, const N: usize> ExactSizeIterator for IntoIter<T, N> {}
impl<T: Send + 'static, const N: usize> FusedIterator for IntoIter<T, N> {}

impl<T: Send + 'static, const N: usize> Drop for IntoIter<T, N> {
    fn drop(&mut self) {
        // SAFETY: written; the iterator is not used any more.
        unsafe { put_back(&mut self.values[self.front..self.back]) };
    }
}

/// The values of a burst that goes on, empty. What is not taken is given back in runs.
pub struct Drain<'a, T: Send + 'static> {
    /// All are written, and the iterator's.
    rest: slice::IterMut<'a, MaybeUninit<Pooled<T>>>,
}

impl<'a, T: Send + 'static> Drain<'a, T> {
    /// # Safety
    /// All are written, and given up by the caller.
    pub(super) unsafe fn over(values: &'a mut [MaybeUninit<Pooled<T>>]) -> Self {
        Self {
            rest: values.iter_mut(),
        }
    }
}

impl<T: Send + 'static> Iterator for Drain<'_, T> {
    type Item = Pooled<T>;

    #[inline]
    fn next(&mut self) -> Option<Pooled<T>> {
        // SAFETY: written, and yielded once.
        Some(unsafe { self.rest.next()?.assume_init_read() })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rest.size_hint()
    }
}

impl<T: Send + 'static> DoubleEndedIterator for Drain<'_, T> {
    #[inline]
    fn next_back(&mut self) -> Option<Pooled<T>> {
        // SAFETY: written, and yielded once.
        Some(unsafe { self.rest.next_back()?.assume_init_read() })
    }
}

impl<T: Send + 'static> ExactSizeIterator for Drain<'_, T> {}
impl<T: Send + 'static> FusedIterator for Drain<'_, T> {}

impl<T: Send + 'static> Drop for Drain<'_, T> {
    fn drop(&mut self) {
        let rest = std::mem::take(&mut self.rest).into_slice();
        // SAFETY: written, and not yielded; the iterator has none of them any more.
        unsafe { put_back(rest) };
    }
}

impl<T: Send + 'static, const N: usize> IntoIterator for Burst<T, N> {
    type Item = Pooled<T>;
    type IntoIter = IntoIter<T, N>;

    fn into_iter(self) -> IntoIter<T, N> {
        let burst = ManuallyDrop::new(self);
        IntoIter {
            // SAFETY: the burst is not used, nor dropped, any more.
            values: unsafe { (&raw const burst.values).read() },
            front: 0,
            back: burst.len,
        }
    }
}

impl<'a, T: Send + 'static, const N: usize> IntoIterator for &'a Burst<T, N> {
    type Item = &'a Pooled<T>;
    type IntoIter = slice::Iter<'a, Pooled<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T: Send + 'static, const N: usize> IntoIterator for &'a mut Burst<T, N> {
    type Item = &'a mut Pooled<T>;
    type IntoIter = slice::IterMut<'a, Pooled<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<T: Send + 'static, const N: usize> std::fmt::Debug for IntoIter<T, N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IntoIter")
            .field("left", &self.len())
            .finish_non_exhaustive()
    }
}

impl<T: Send + 'static> std::fmt::Debug for Drain<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drain")
            .field("left", &self.len())
            .finish_non_exhaustive()
    }
}
