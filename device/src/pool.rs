//! The scratch pool: textures that are lent for the time of a run, returned, and lent again.
//!
//! A request takes the idle texture of its format that has to grow least, by the rule of the texture RFC ("Addendum:
//! Storage scope based memory planning"):
//!
//! ```text
//! idle 5 x 7, asked 6 x 4       grown it would be 6 x 7: 7 texels more, no more than the 24 asked for  -> grow
//! idle 5 x 7, asked 90 x 1      grown it would be 90 x 7: 595 texels more than there are               -> create 90 x 1
//! ```
//!
//! Among textures that grow equally, the one that wastes the fewest texels is taken; among those, the one that was returned
//! first. The larger texture is created before the old one is released, so that the old one is kept if that fails.
//!
//! A texture is lent as a [`Scratch`], which returns it when it is dropped, so exactly once, in any order and after
//! failures, too.

use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::plan::TexelFormat;

/// A source of textures.
pub trait TextureAllocator {
    /// A texture; dropping it releases its memory.
    type Texture;
    /// The reason why a texture cannot be created.
    type Error;

    /// Creates a texture of `width` by `height` texels of a format.
    ///
    /// # Errors
    /// The device does not support the format, or has not enough memory.
    fn create(&self, width: u64, height: u64, format: TexelFormat) -> Result<Self::Texture, Self::Error>;
}

/// The limits of a device on the size of a texture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScratchLimits {
    /// Maximal number of texels in a row.
    pub width: u64,
    /// Maximal number of rows.
    pub height: u64,
    /// Maximal size of one texture in bytes.
    pub bytes: u64,
}

/// Statistics of a pool: counts of requests since it was created, and its present and maximal size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScratchStats {
    /// Number of requests.
    pub requests: u64,
    /// Requests for which an idle texture was large enough.
    pub hits: u64,
    /// Requests for which an idle texture was replaced by a larger one.
    pub grown: u64,
    /// Requests for which a new texture of the requested size was created.
    pub created: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Bytes of all textures, idle or lent.
    pub bytes_held: u64,
    /// The maximum of `bytes_held` so far. While a texture grows, the old and the new one count.
    pub bytes_held_at_most: u64,
    /// Bytes of the textures that are lent.
    pub bytes_in_use: u64,
    /// Bytes of lent textures beyond the requested sizes.
    pub bytes_wasted: u64,
}

/// The reason why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScratchError<E> {
    /// The extents exceed the limits, or one of them is 0.
    #[error("a texture of {width} by {height} texels is beyond the limits of {} by {} texels and {} bytes", .limits.width, .limits.height, .limits.bytes)]
    Extents {
        /// Requested number of texels in a row.
        width: u64,
        /// Requested number of rows.
        height: u64,
        /// The limits of the pool.
        limits: ScratchLimits,
    },
    /// The allocator failed.
    #[error("{0}")]
    Allocator(E),
}

/// A pool of textures; see the module.
#[derive(Debug)]
pub struct ScratchPool<T> {
    limits: ScratchLimits,
    inner: Mutex<Inner<T>>,
}

#[derive(Debug)]
struct Inner<T> {
    /// The textures that are not lent, in the order in which they were returned.
    idle: Vec<Sized2d<T>>,
    stats: ScratchStats,
}

/// A texture and its extents.
#[derive(Debug)]
struct Sized2d<T> {
    texture: T,
    width: u64,
    height: u64,
    format: TexelFormat,
}

/// A texture that is lent; dropping it returns it to the pool.
#[derive(Debug)]
pub struct Scratch<'a, T> {
    pool: &'a ScratchPool<T>,
    /// `None` only while it is dropped.
    lent: Option<Sized2d<T>>,
    /// The requested size in bytes.
    asked: u64,
}

/// The result of a search among the idle textures. Textures are given by their positions in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// This texture is large enough.
    Use(usize),
    /// This texture is to be replaced by one of this width and height.
    Grow(usize, u64, u64),
    /// No idle texture of the format is suitable: each would exceed the limits, or grow by more texels than are
    /// requested.
    Create,
}

/// The size of a texture in bytes; `u64::MAX` on overflow.
fn bytes_of(width: u64, height: u64, format: TexelFormat) -> u64 {
    width.saturating_mul(height).saturating_mul(format.texel_bytes())
}

impl<T> Sized2d<T> {
    fn bytes(&self) -> u64 {
        bytes_of(self.width, self.height, self.format)
    }
}

impl ScratchLimits {
    /// Whether a texture of these extents is within the limits.
    fn allow(&self, width: u64, height: u64, format: TexelFormat) -> bool {
        width <= self.width && height <= self.height && bytes_of(width, height, format) <= self.bytes
    }
}

impl<T> ScratchPool<T> {
    /// An empty pool.
    pub fn new(limits: ScratchLimits) -> Self {
        Self { limits, inner: Mutex::new(Inner { idle: Vec::new(), stats: ScratchStats::default() }) }
    }

    /// The statistics of the pool.
    pub fn stats(&self) -> ScratchStats {
        self.lock().stats
    }

    /// Releases all idle textures.
    pub fn trim(&self) {
        let mut inner = self.lock();
        let released: u64 = inner.idle.drain(..).map(|texture| texture.bytes()).sum();
        inner.stats.bytes_held -= released;
    }

    /// Lends a texture of at least `width` by `height` texels; the caller uses those from (0, 0) on. The texture still holds
    /// what its last user wrote.
    ///
    /// If a larger texture cannot be created in place of an idle one, a texture of the requested size is created. If that
    /// fails, too, all idle textures are released and the creation is tried once more.
    ///
    /// # Errors
    /// The extents are not within the limits, or the allocator fails. The pool remains usable.
    pub fn request<A: TextureAllocator<Texture = T>>(
        &self,
        from: &A,
        width: u64,
        height: u64,
        format: impl Into<TexelFormat>,
    ) -> Result<Scratch<'_, T>, ScratchError<A::Error>> {
        let format = format.into();
        let mut inner = self.lock();
        inner.stats.requests += 1;
        if width == 0 || height == 0 || !self.limits.allow(width, height, format) {
            inner.stats.failed += 1;
            return Err(ScratchError::Extents { width, height, limits: self.limits });
        }
        let lent = match inner.choose(width, height, format, self.limits) {
            Choice::Use(place) => {
                inner.stats.hits += 1;
                Ok(inner.idle.remove(place))
            }
            Choice::Grow(place, wider, higher) => match from.create(wider, higher, format) {
                Ok(texture) => Ok(inner.replace(place, Sized2d { texture, width: wider, height: higher, format })),
                // Both textures exist while one grows, so the smaller one may still fit where the larger one does not.
                Err(_) => inner.create(from, width, height, format),
            },
            Choice::Create => inner.create(from, width, height, format),
        };
        let lent = lent.map_err(|error| {
            inner.stats.failed += 1;
            ScratchError::Allocator(error)
        })?;
        let asked = bytes_of(width, height, format);
        inner.stats.bytes_in_use += lent.bytes();
        inner.stats.bytes_wasted += lent.bytes() - asked;
        drop(inner);
        Ok(Scratch { pool: self, lent: Some(lent), asked })
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Inner<T> {
    /// Chooses the idle texture that grows by the fewest texels; among those the one with the fewest unused texels, then the
    /// one that was returned first. A texture that would exceed the limits, or grow by more texels than are requested, is
    /// not chosen.
    fn choose(&self, width: u64, height: u64, format: TexelFormat, limits: ScratchLimits) -> Choice {
        let texels = |width: u64, height: u64| u128::from(width) * u128::from(height);
        let asked = texels(width, height);
        let candidates = self.idle.iter().enumerate().filter(|(_, idle)| idle.format == format);
        let sized = candidates.map(|(place, idle)| {
            let (wider, higher) = (idle.width.max(width), idle.height.max(height));
            let grown = texels(wider, higher);
            (grown - texels(idle.width, idle.height), grown - asked, place, wider, higher)
        });
        let near =
            sized.filter(|(added, _, _, wider, higher)| *added <= asked && limits.allow(*wider, *higher, format));
        match near.min() {
            None => Choice::Create,
            Some((0, _, place, ..)) => Choice::Use(place),
            Some((_, _, place, wider, higher)) => Choice::Grow(place, wider, higher),
        }
    }

    /// Creates a texture of exactly this size. If that fails and there are idle textures, they are released, and the
    /// creation is tried once more.
    fn create<A: TextureAllocator<Texture = T>>(
        &mut self,
        from: &A,
        width: u64,
        height: u64,
        format: TexelFormat,
    ) -> Result<Sized2d<T>, A::Error> {
        let texture = match from.create(width, height, format) {
            Err(_) if !self.idle.is_empty() => {
                let released: u64 = self.idle.drain(..).map(|texture| texture.bytes()).sum();
                self.stats.bytes_held -= released;
                from.create(width, height, format)?
            }
            outcome => outcome?,
        };
        let created = Sized2d { texture, width, height, format };
        self.stats.created += 1;
        self.stats.bytes_held += created.bytes();
        self.stats.bytes_held_at_most = self.stats.bytes_held_at_most.max(self.stats.bytes_held);
        Ok(created)
    }

    /// Releases the idle texture at `place`, counts `larger` in its place, and returns it.
    fn replace(&mut self, place: usize, larger: Sized2d<T>) -> Sized2d<T> {
        self.stats.grown += 1;
        self.stats.bytes_held += larger.bytes();
        self.stats.bytes_held_at_most = self.stats.bytes_held_at_most.max(self.stats.bytes_held);
        let old = self.idle.remove(place);
        self.stats.bytes_held -= old.bytes();
        larger
    }
}

impl<T> Scratch<'_, T> {
    /// The width and height of the texture in texels: at least the requested ones.
    pub fn extents(&self) -> [u64; 2] {
        self.lent.as_ref().map_or([0, 0], |lent| [lent.width, lent.height])
    }
}

impl<T> Deref for Scratch<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.lent {
            Some(lent) => &lent.texture,
            None => unreachable!("it is taken out only when it is dropped"),
        }
    }
}

impl<T> Drop for Scratch<'_, T> {
    fn drop(&mut self) {
        if let Some(lent) = self.lent.take() {
            let mut inner = self.pool.lock();
            inner.stats.bytes_in_use -= lent.bytes();
            inner.stats.bytes_wasted -= lent.bytes() - self.asked;
            inner.idle.push(lent);
        }
    }
}
