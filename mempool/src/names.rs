//! Finding pools: by name, by the address of an object, all of them.

use crate::builder::Builder;
use crate::pool::RawPool;
use crate::registry;
use std::ptr::NonNull;

/// Handles of all pools of the process, oldest first.
///
/// Pools that are being built are not among them, nor pools whose last handle was dropped, even if
/// objects of theirs are still out, nor those with a
/// [single-producer backend](Builder::spsc_backend). The handles count: a pool that somebody else would otherwise have
/// freed lives until they are dropped.
///
/// ```
/// let _pool = mempool::RawPool::builder(64).name("walked").build()?;
/// assert!(mempool::pools().iter().any(|pool| pool.name() == "walked"));
/// # Ok::<(), mempool::CreateError>(())
/// ```
#[doc(alias = "rte_mempool_walk")]
#[doc(alias = "rte_mempool_list_dump")]
pub fn pools() -> Vec<RawPool> {
    registry::all()
}

impl RawPool {
    /// A handle of the oldest pool of this name, as [`pools`] has it; the empty name is none.
    ///
    /// ```
    /// use mempool::RawPool;
    ///
    /// let pool = RawPool::builder(64).unique_name("found").build()?;
    /// assert_eq!(RawPool::find("found").map(|found| found.pool_ref()), Some(pool.pool_ref()));
    /// drop(pool);
    /// assert!(RawPool::find("found").is_none());
    /// # Ok::<(), mempool::CreateError>(())
    /// ```
    #[doc(alias = "rte_mempool_lookup")]
    pub fn find(name: &str) -> Option<RawPool> {
        if name.is_empty() {
            return None;
        }
        registry::find(|inner| *inner.name == *name)
    }

    /// A handle of the pool in one of whose objects `address` lies, as [`pools`] has it. Looks at all
    /// pools: for people and checks, not for packets.
    ///
    /// ```
    /// use mempool::RawPool;
    ///
    /// let pool = RawPool::builder(64).build()?;
    /// let object = pool.object(5).expect("there are more");
    /// let owner = RawPool::owner_of(object).expect("it has one");
    /// assert_eq!(owner.pool_ref(), pool.pool_ref());
    /// # Ok::<(), mempool::CreateError>(())
    /// ```
    #[doc(alias = "rte_mempool_from_obj")]
    pub fn owner_of(address: NonNull<u8>) -> Option<RawPool> {
        registry::find(|inner| inner.locate(address).is_some())
    }
}

impl Builder {
    /// A name that no other pool of the process may have when this one is built; others may take it
    /// later, by [`name`](Self::name). It is free again when the pool's last handle is dropped.
    ///
    /// A name that is taken is [`CreateError::NameTaken`](crate::CreateError::NameTaken).
    #[doc(alias = "EEXIST")]
    pub fn unique_name(mut self, name: &str) -> Self {
        self.name = name.into();
        self.unique = true;
        self
    }
}
