//! Values that can lie in a private area or a tag: fixed in size, made of bytes.

/// A value that is made of [`LEN`](Self::LEN) bytes and can be made of any.
///
/// Integers and arrays of bytes are; structs of one's own become by saying how.
pub trait PlainValue: Copy {
    /// Bytes that it takes.
    const LEN: usize;
    /// What its place is a multiple of; a power of two.
    const ALIGN: usize;
    /// Writes it to `LEN` bytes.
    fn write_to(self, bytes: &mut [u8]);
    /// Reads it from `LEN` bytes.
    fn read_from(bytes: &[u8]) -> Self;
}

macro_rules! integers {
    ($($int:ty),*) => {$(
        impl PlainValue for $int {
            const LEN: usize = size_of::<$int>();
            const ALIGN: usize = size_of::<$int>();

            #[inline]
            fn write_to(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_ne_bytes());
            }

            #[inline]
            fn read_from(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<$int>()];
                own.copy_from_slice(bytes);
                Self::from_ne_bytes(own)
            }
        }
    )*};
}

integers!(u8, u16, u32, u64, i8, i16, i32, i64);

impl<const N: usize> PlainValue for [u8; N] {
    const LEN: usize = N;
    const ALIGN: usize = 1;

    #[inline]
    fn write_to(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self);
    }

    #[inline]
    fn read_from(bytes: &[u8]) -> Self {
        let mut own = [0; N];
        own.copy_from_slice(bytes);
        own
    }
}
