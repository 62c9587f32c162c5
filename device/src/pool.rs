//! The scratch pool: textures for the time of a run, given back and used again.
//!
//! A request takes the idle texture of its channel type that has to grow least, by the rule of the texture RFC ("Addendum:
//! Storage scope based memory planning"):
//!
//! ```text
//! idle 5 x 7, asked 6 x 4       grown it would be 6 x 7: 7 texels more, no more than the 24 asked for  -> grow
//! idle 5 x 7, asked 90 x 1      grown it would be 90 x 7: 595 texels more than there are               -> create 90 x 1
//! ```
//!
//! Of several that grow equally, the one that wastes least; of several that waste equally, the one that was given back
//! first. A larger texture is there before the old one is released: where it cannot be had, the old one stays.
//!
//! A texture is lent as a [`Scratch`], which gives it back when it is dropped, in whatever order and also on the way out
//! of a failure. Nobody can give it back twice.

use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::plan::ChannelType;

/// Where textures come from; dropping one releases it.
pub trait TextureAllocator {
    /// A texture.
    type Texture;
    /// Why there is none.
    type Error;

    /// A texture of `width` by `height` texels with four channels.
    ///
    /// # Errors
    /// There is none to be had.
    fn create(&self, width: u64, height: u64, channel: ChannelType) -> Result<Self::Texture, Self::Error>;
}

/// How large a texture may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScratchLimits {
    /// Texels in a row, at most.
    pub width: u64,
    /// Rows, at most.
    pub height: u64,
    /// Bytes of one texture, at most.
    pub bytes: u64,
}

/// What a pool has done and holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScratchStats {
    /// Textures asked for.
    pub requests: u64,
    /// Requests for which an idle texture was large enough.
    pub hits: u64,
    /// Requests for which an idle texture was replaced by a larger one.
    pub grown: u64,
    /// Requests for which a texture was made.
    pub created: u64,
    /// Requests that came to nothing.
    pub failed: u64,
    /// Bytes of all textures, idle or lent.
    pub bytes_held: u64,
    /// The most bytes that were held at once; while a texture grows, the old one counts too.
    pub bytes_held_at_most: u64,
    /// Bytes of the textures that are lent.
    pub bytes_in_use: u64,
    /// Bytes of lent textures beyond what was asked for.
    pub bytes_wasted: u64,
}

/// Why a request came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScratchError<E> {
    /// It is larger than a texture can be, or has no texels.
    #[error("a texture of {width} by {height} texels is beyond the limits of {} by {} texels and {} bytes", .limits.width, .limits.height, .limits.bytes)]
    Extents {
        /// Texels in a row.
        width: u64,
        /// Rows.
        height: u64,
        /// How large it may be.
        limits: ScratchLimits,
    },
    /// There was none to be had.
    #[error("{0}")]
    Allocator(E),
}

/// Textures that are lent, given back and lent again.
#[derive(Debug)]
pub struct ScratchPool<T> {
    limits: ScratchLimits,
    inner: Mutex<Inner<T>>,
}

#[derive(Debug)]
struct Inner<T> {
    /// Those that nobody uses, the one that was given back first in front.
    idle: Vec<Sized2d<T>>,
    stats: ScratchStats,
}

/// A texture and its extents.
#[derive(Debug)]
struct Sized2d<T> {
    texture: T,
    width: u64,
    height: u64,
    channel: ChannelType,
}

/// A texture that is lent; it goes back to the pool when this is dropped.
#[derive(Debug)]
pub struct Scratch<'a, T> {
    pool: &'a ScratchPool<T>,
    /// There until it is dropped.
    lent: Option<Sized2d<T>>,
    /// Bytes that were asked for.
    asked: u64,
}

/// What became of a search among the idle textures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// This one is large enough.
    Use(usize),
    /// This one grows to these extents.
    Grow(usize, u64, u64),
    /// None is near enough.
    Create,
}

/// Bytes of a texture; more than there are where they leave 64 bits.
fn bytes_of(width: u64, height: u64, channel: ChannelType) -> u64 {
    width.saturating_mul(height).saturating_mul(channel.texel_bytes())
}

impl<T> Sized2d<T> {
    fn bytes(&self) -> u64 {
        bytes_of(self.width, self.height, self.channel)
    }
}

impl ScratchLimits {
    fn allow(&self, width: u64, height: u64, channel: ChannelType) -> bool {
        width <= self.width && height <= self.height && bytes_of(width, height, channel) <= self.bytes
    }
}

impl<T> ScratchPool<T> {
    /// A pool of nothing.
    pub fn new(limits: ScratchLimits) -> Self {
        Self { limits, inner: Mutex::new(Inner { idle: Vec::new(), stats: ScratchStats::default() }) }
    }

    /// What it has done and holds.
    pub fn stats(&self) -> ScratchStats {
        self.lock().stats
    }

    /// Releases all idle textures.
    pub fn trim(&self) {
        let mut inner = self.lock();
        let released: u64 = inner.idle.drain(..).map(|texture| texture.bytes()).sum();
        inner.stats.bytes_held -= released;
    }

    /// A texture of at least `width` by `height` texels, of which the caller uses those from (0, 0) on. What it holds is
    /// what the last user left.
    ///
    /// Where a texture cannot grow one of the size asked for is made, and where that fails all idle ones are released and
    /// it is tried once more.
    ///
    /// # Errors
    /// Extents that no texture has, or a failure of the allocator; the pool is as good as before.
    pub fn request<A: TextureAllocator<Texture = T>>(
        &self,
        from: &A,
        width: u64,
        height: u64,
        channel: ChannelType,
    ) -> Result<Scratch<'_, T>, ScratchError<A::Error>> {
        let mut inner = self.lock();
        inner.stats.requests += 1;
        if width == 0 || height == 0 || !self.limits.allow(width, height, channel) {
            inner.stats.failed += 1;
            return Err(ScratchError::Extents { width, height, limits: self.limits });
        }
        let lent = match inner.choose(width, height, channel, self.limits) {
            Choice::Use(place) => {
                inner.stats.hits += 1;
                Ok(inner.idle.remove(place))
            }
            Choice::Grow(place, wider, higher) => match from.create(wider, higher, channel) {
                Ok(texture) => Ok(inner.replace(place, Sized2d { texture, width: wider, height: higher, channel })),
                // Both textures exist while one grows, so the smaller one may still fit where the larger one does not.
                Err(_) => inner.create(from, width, height, channel),
            },
            Choice::Create => inner.create(from, width, height, channel),
        };
        let lent = lent.map_err(|error| {
            inner.stats.failed += 1;
            ScratchError::Allocator(error)
        })?;
        let asked = bytes_of(width, height, channel);
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
    /// The idle texture to use, if any: least added, then least wasted, then first.
    fn choose(&self, width: u64, height: u64, channel: ChannelType, limits: ScratchLimits) -> Choice {
        let texels = |width: u64, height: u64| u128::from(width) * u128::from(height);
        let asked = texels(width, height);
        let candidates = self.idle.iter().enumerate().filter(|(_, idle)| idle.channel == channel);
        let sized = candidates.map(|(place, idle)| {
            let (wider, higher) = (idle.width.max(width), idle.height.max(height));
            let grown = texels(wider, higher);
            (grown - texels(idle.width, idle.height), grown - asked, place, wider, higher)
        });
        let near =
            sized.filter(|(added, _, _, wider, higher)| *added <= asked && limits.allow(*wider, *higher, channel));
        match near.min() {
            None => Choice::Create,
            Some((0, _, place, ..)) => Choice::Use(place),
            Some((_, _, place, wider, higher)) => Choice::Grow(place, wider, higher),
        }
    }

    /// A texture of just this size; if there is none to be had, idle ones are released for it.
    fn create<A: TextureAllocator<Texture = T>>(
        &mut self,
        from: &A,
        width: u64,
        height: u64,
        channel: ChannelType,
    ) -> Result<Sized2d<T>, A::Error> {
        let texture = match from.create(width, height, channel) {
            Err(_) if !self.idle.is_empty() => {
                let released: u64 = self.idle.drain(..).map(|texture| texture.bytes()).sum();
                self.stats.bytes_held -= released;
                from.create(width, height, channel)?
            }
            outcome => outcome?,
        };
        let created = Sized2d { texture, width, height, channel };
        self.stats.created += 1;
        self.stats.bytes_held += created.bytes();
        self.stats.bytes_held_at_most = self.stats.bytes_held_at_most.max(self.stats.bytes_held);
        Ok(created)
    }

    /// The larger texture, after the idle one that it stands for is released.
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
    /// Its width and height in texels: at least what was asked for.
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
