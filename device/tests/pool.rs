//! The scratch pool without a device: textures that count themselves, and an allocator that fails on request.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use proptest::prelude::*;
use tilewright_device::{
    ChannelType, Scratch, ScratchError, ScratchLimits, ScratchPool, ScratchStats, TexelFormat, TextureAllocator,
};

const F32: ChannelType = ChannelType::F32;
const LIMITS: ScratchLimits = ScratchLimits { width: 200, height: 100, bytes: 200 * 100 * 16 };

/// The size in bytes of each allocated texture, by number.
type Heap = Rc<RefCell<BTreeMap<u64, u64>>>;

#[derive(Debug)]
struct Texture {
    number: u64,
    heap: Heap,
}

impl Drop for Texture {
    fn drop(&mut self) {
        self.heap.borrow_mut().remove(&self.number).expect("nothing is released twice");
    }
}

/// Numbers textures from 0; a call for which `fails` returns true fails.
struct Allocator<F> {
    heap: Heap,
    calls: Cell<u64>,
    fails: F,
}

#[derive(Debug, PartialEq, Eq)]
struct OutOfMemory;

impl<F: Fn(u64) -> bool> Allocator<F> {
    fn new(fails: F) -> Self {
        Self { heap: Heap::default(), calls: Cell::new(0), fails }
    }

    fn bytes(&self) -> u64 {
        self.heap.borrow().values().sum()
    }
}

impl<F: Fn(u64) -> bool> TextureAllocator for Allocator<F> {
    type Texture = Texture;
    type Error = OutOfMemory;

    fn create(&self, width: u64, height: u64, format: TexelFormat) -> Result<Texture, OutOfMemory> {
        let number = self.calls.replace(self.calls.get() + 1);
        if (self.fails)(number) {
            return Err(OutOfMemory);
        }
        self.heap.borrow_mut().insert(number, width * height * format.texel_bytes());
        Ok(Texture { number, heap: Rc::clone(&self.heap) })
    }
}

fn never(_: u64) -> bool {
    false
}

fn pool() -> ScratchPool<Texture> {
    ScratchPool::new(LIMITS)
}

/// The extents and the number of the texture that is lent for a request.
fn lent(scratch: &Scratch<'_, Texture>) -> ([u64; 2], u64) {
    (scratch.extents(), scratch.number)
}

/// A pool with idle textures of these extents, numbered in this order.
fn idle<F: Fn(u64) -> bool>(from: &Allocator<F>, extents: &[[u64; 2]]) -> ScratchPool<Texture> {
    let pool = pool();
    let all: Vec<_> = extents.iter().map(|[w, h]| pool.request(from, *w, *h, F32).unwrap()).collect();
    drop(all);
    assert_eq!(pool.stats().created, u64::try_from(extents.len()).unwrap());
    pool
}

#[test]
fn a_texture_given_back_is_lent_again() {
    let from = Allocator::new(never);
    let pool = pool();
    drop(pool.request(&from, 7, 5, F32).unwrap());
    assert_eq!(lent(&pool.request(&from, 7, 5, F32).unwrap()), ([7, 5], 0));
    let first = pool.request(&from, 6, 3, F32).unwrap();
    let second = pool.request(&from, 6, 3, F32).unwrap();
    assert_eq!((lent(&first), lent(&second)), (([7, 5], 0), ([6, 3], 1)));
    let stats = pool.stats();
    assert_eq!((stats.requests, stats.hits, stats.grown, stats.created), (4, 2, 0, 2));
    assert_eq!((stats.bytes_held, stats.bytes_in_use, stats.bytes_wasted), (53 * 16, 53 * 16, 17 * 16));
    drop((first, second));
    let stats = pool.stats();
    assert_eq!((stats.bytes_held, stats.bytes_in_use, stats.bytes_wasted), (53 * 16, 0, 0));
    assert_eq!(from.bytes(), stats.bytes_held);
}

#[test]
fn the_texture_that_grows_least_is_grown_and_the_old_one_released() {
    let from = Allocator::new(never);
    let pool = idle(&from, &[[5, 7], [9, 2]]);
    // 6 x 7 has 7 texels more than 5 x 7; 9 x 4 has 18 more than 9 x 2.
    assert_eq!(lent(&pool.request(&from, 6, 4, F32).unwrap()), ([6, 7], 2));
    assert_eq!(from.heap.borrow().keys().copied().collect::<Vec<_>>(), [1, 2]);
    let stats = pool.stats();
    assert_eq!((stats.grown, stats.hits), (1, 0));
    assert_eq!(stats.bytes_held, (42 + 18) * 16);
    assert_eq!(stats.bytes_held_at_most, (35 + 18 + 42) * 16);
}

#[test]
fn a_texture_that_would_grow_by_more_than_is_asked_for_stays() {
    let from = Allocator::new(never);
    let pool = idle(&from, &[[5, 7]]);
    assert_eq!(lent(&pool.request(&from, 90, 1, F32).unwrap()), ([90, 1], 1));
    // 10 x 7 has 35 texels more, as many as are requested.
    assert_eq!(lent(&pool.request(&from, 7, 5, F32).unwrap()).0, [7, 7]);
    let pool = idle(&from, &[[5, 7]]);
    assert_eq!(lent(&pool.request(&from, 10, 4, F32).unwrap()).0, [10, 7]);
    let pool = idle(&from, &[[5, 7]]);
    assert_eq!(lent(&pool.request(&from, 10, 3, F32).unwrap()).0, [10, 3]);
}

#[test]
fn of_those_that_fit_the_one_that_wastes_least_is_lent() {
    let from = Allocator::new(never);
    let pool = idle(&from, &[[20, 10], [9, 8], [12, 6]]);
    assert_eq!(lent(&pool.request(&from, 8, 6, F32).unwrap()), ([9, 8], 1));
    // With equal waste, the one that was returned first is taken.
    let pool = idle(&from, &[[20, 10], [12, 6], [9, 8]]);
    assert_eq!(lent(&pool.request(&from, 8, 6, F32).unwrap()).0, [12, 6]);
}

#[test]
fn channel_types_do_not_mix() {
    let from = Allocator::new(never);
    let pool = idle(&from, &[[7, 5]]);
    for (number, channel) in [(1, ChannelType::F16), (2, ChannelType::I32), (3, ChannelType::U8)] {
        assert_eq!(lent(&pool.request(&from, 7, 5, channel).unwrap()), ([7, 5], number), "{channel:?}");
    }
}

#[test]
fn no_texture_is_or_grows_beyond_the_limits() {
    let from = Allocator::new(never);
    let pool = pool();
    for (width, height) in [(201, 1), (1, 101), (u64::MAX, u64::MAX), (0, 5), (5, 0)] {
        let refused = pool.request(&from, width, height, F32).map(|_| ());
        assert_eq!(refused, Err(ScratchError::Extents { width, height, limits: LIMITS }));
    }
    assert_eq!((from.calls.get(), pool.stats().failed), (0, 5));
    let tight = ScratchPool::new(ScratchLimits { bytes: 100 * 16, ..LIMITS });
    drop(tight.request(&from, 20, 4, F32).unwrap());
    // 20 x 6 would be 120 texels.
    assert_eq!(tight.request(&from, 15, 6, F32).unwrap().extents(), [15, 6]);
    assert_eq!(tight.request(&from, 20, 5, F32).unwrap().extents(), [20, 5]);
    assert!(tight.request(&from, 21, 5, F32).is_err());
}

#[test]
fn where_a_texture_cannot_grow_the_old_one_stays_usable() {
    let from = Allocator::new(|call| call == 1);
    let pool = idle(&from, &[[5, 7]]);
    let instead = pool.request(&from, 6, 7, F32).unwrap();
    assert_eq!(lent(&instead), ([6, 7], 2), "one of the size asked for");
    let old = pool.request(&from, 5, 7, F32).unwrap();
    assert_eq!(lent(&old), ([5, 7], 0));
    let stats = pool.stats();
    assert_eq!((stats.grown, stats.created, stats.hits, stats.failed), (0, 2, 1, 0));
    assert_eq!(stats.bytes_held, from.bytes());
}

#[test]
fn idle_textures_make_room_before_a_request_fails() {
    let from = Allocator::new(|call| call == 2);
    let pool = idle(&from, &[[5, 7], [9, 2]]);
    assert_eq!(lent(&pool.request(&from, 90, 1, F32).unwrap()), ([90, 1], 3));
    assert_eq!(pool.stats().bytes_held, 90 * 16);
    assert_eq!(from.bytes(), 90 * 16);
}

#[test]
fn trim_releases_what_is_idle_and_nothing_else() {
    let from = Allocator::new(never);
    let pool = idle(&from, &[[5, 7], [9, 2]]);
    let lent = pool.request(&from, 9, 2, F32).unwrap();
    pool.trim();
    assert_eq!((from.bytes(), pool.stats().bytes_held), (18 * 16, 18 * 16));
    drop(lent);
    assert_eq!(pool.stats().bytes_in_use, 0);
    drop(pool);
    assert_eq!(from.bytes(), 0);
}

/// Requests of one run; the run ends at the first failure, as a session's does.
const RUN: [(u64, u64, ChannelType); 6] = [
    (5, 7, F32),
    (6, 7, F32),
    (30, 2, ChannelType::F16),
    (31, 3, ChannelType::F16),
    (3, 50, F32),
    (2, 3, ChannelType::U8),
];

fn run<F: Fn(u64) -> bool>(pool: &ScratchPool<Texture>, from: &Allocator<F>, grown: u64) -> bool {
    let mut held = Vec::new();
    for (width, height, channel) in RUN {
        match pool.request(from, width + grown, height + grown, channel) {
            Ok(scratch) => held.push(scratch),
            Err(_) => return false,
        }
        assert_eq!(pool.stats().bytes_held, from.bytes());
    }
    // Returned in another order than lent.
    held.swap_remove(2);
    held.swap_remove(0);
    true
}

#[test]
fn nothing_leaks_whichever_allocation_of_a_run_fails() {
    let all = Allocator::new(never);
    let dry = pool();
    assert!((0..3).all(|grown| run(&dry, &all, grown)));
    let n_calls = all.calls.get();
    assert!(n_calls > 10, "{n_calls} allocations");
    for first in 0..n_calls {
        for n_failures in [1, 2, 3, n_calls] {
            let from = Allocator::new(|call| (first..first + n_failures).contains(&call));
            let pool = pool();
            let ends: Vec<bool> = (0..3).map(|grown| run(&pool, &from, grown)).collect();
            let stats = pool.stats();
            assert_eq!((stats.bytes_in_use, stats.bytes_wasted), (0, 0), "failure {first}, {n_failures} times");
            assert_eq!(stats.bytes_held, from.bytes());
            assert_eq!(stats.failed, u64::try_from(ends.iter().filter(|end| !**end).count()).unwrap());
            assert_eq!(stats.requests, stats.hits + stats.grown + stats.created + stats.failed);
            drop(pool);
            assert_eq!(from.bytes(), 0, "failure {first}, {n_failures} times");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Requests and returns in any order, with failures: every lent texture is large enough and lent once, and the
    /// statistics agree with the allocated textures.
    #[test]
    fn any_order_of_requests_and_returns_keeps_the_books(
        steps in prop::collection::vec((1..40_u64, 1..40_u64, 0..3_u8, any::<prop::sample::Index>()), 1..60),
        failures in prop::collection::btree_set(0..60_u64, 0..10),
    ) {
        let from = Allocator::new(|call| failures.contains(&call));
        let pool = pool();
        let mut held: Vec<Scratch<'_, Texture>> = Vec::new();
        for (width, height, kind, index) in steps {
            if kind == 0 && !held.is_empty() {
                held.swap_remove(index.index(held.len()));
            } else {
                let channel = if kind == 1 { F32 } else { ChannelType::I8 };
                if let Ok(scratch) = pool.request(&from, width, height, channel) {
                    let [w, h] = scratch.extents();
                    prop_assert!(w >= width && h >= height);
                    prop_assert!(held.iter().all(|other| other.number != scratch.number));
                    held.push(scratch);
                }
            }
            let stats: ScratchStats = pool.stats();
            prop_assert_eq!(stats.bytes_held, from.bytes());
            let in_use: u64 = held.iter().map(|scratch| from.heap.borrow()[&scratch.number]).sum();
            prop_assert_eq!(stats.bytes_in_use, in_use);
        }
        drop(held);
        prop_assert_eq!(pool.stats().bytes_in_use, 0);
        drop(pool);
        prop_assert_eq!(from.bytes(), 0);
    }
}
