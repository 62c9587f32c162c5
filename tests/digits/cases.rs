//! Maps as text, with what is claimed of them.

use tilewright_ir::{Expr, IndexMap, InverseClaim};
use tilewright_script::{Symbols, read_index_map, read_shape};
use tilewright_verify::MapClaim;

/// A map and what is claimed of it.
pub(crate) struct Case {
    pub(crate) text: String,
    pub(crate) map: IndexMap,
    pub(crate) shape: Vec<Expr>,
    pub(crate) padded: Vec<usize>,
    pub(crate) inverse: Option<InverseClaim>,
    pub(crate) meaning: Option<IndexMap>,
    pub(crate) assumptions: Vec<Expr>,
}

impl Case {
    pub(crate) fn claim(&self) -> MapClaim<'_> {
        let claim = MapClaim::new(&self.map, &self.shape).padded(&self.padded).assuming(&self.assumptions);
        MapClaim { inverse: self.inverse.as_ref(), meaning: self.meaning.as_ref(), ..claim }
    }

    pub(crate) fn read(map: &str, logical: &str, physical: &str) -> Self {
        Builder::new(map, logical, physical).done()
    }
}

struct Builder {
    symbols: Symbols,
    case: Case,
}

impl Builder {
    fn new(map: &str, logical: &str, physical: &str) -> Self {
        let mut symbols = Symbols::default();
        let domain = read_shape(logical, &mut symbols).unwrap();
        let map = read_index_map(map, Some(&domain), &mut symbols).unwrap();
        let shape = read_shape(physical, &mut symbols).unwrap();
        let text = format!("{logical} -> {physical}");
        let (padded, assumptions) = (Vec::new(), Vec::new());
        Self { symbols, case: Case { text, map, shape, padded, inverse: None, meaning: None, assumptions } }
    }

    fn padded(mut self, axes: &[usize]) -> Self {
        self.case.padded = axes.to_vec();
        self
    }

    /// The inverse as a lambda whose last result is 1 on the padding.
    fn inverse(mut self, text: &str) -> Self {
        let map = read_index_map(text, Some(&self.case.shape), &mut self.symbols).unwrap();
        let (last, outputs) = map.outputs().split_last().unwrap();
        let padding = match last {
            Expr::IfThenElse(condition, ..) => (**condition).clone(),
            other => Expr::bool(other.as_const_int() != Some(0)),
        };
        self.case.inverse = Some(InverseClaim { vars: map.vars().to_vec(), outputs: outputs.to_vec(), padding });
        self
    }

    fn meaning(mut self, text: &str) -> Self {
        let domain = self.case.map.domain().to_vec();
        self.case.meaning = Some(read_index_map(text, Some(&domain), &mut self.symbols).unwrap());
        self
    }

    fn assuming(mut self, text: &str) -> Self {
        let map = read_index_map(&format!("lambda z: [if_then_else({text}, 1, 0)]"), None, &mut self.symbols).unwrap();
        let Expr::IfThenElse(condition, ..) = &map.outputs()[0] else { panic!("{text}") };
        self.case.assumptions.push((**condition).clone());
        self
    }

    fn done(self) -> Case {
        self.case
    }
}

fn new(map: &str, logical: &str, physical: &str) -> Builder {
    Builder::new(map, logical, physical)
}

const K: &str = "((C+3)//4)";

/// True maps.
pub(crate) fn all() -> Vec<Case> {
    let flat = format!("lambda n, h, w, c: [(((n*{K} + c//4)*H + h)*W + w)*4 + c%4]");
    let flat_inverse = format!(
        "lambda p: [p//(4*W*H*{K}), p//(4*W)%H, p//4%W, p//(4*W*H)%{K}*4 + p%4, \
         if_then_else(p//(4*W*H)%{K}*4 + p%4 >= C, 1, 0)]"
    );
    let tiled = "lambda r, c: [((((r//8)*((C+127)//128) + c//128)*4 + r%8//2)*128 + c%128)*2 + r%8%2]";
    let tiled_inverse = "lambda p: [p//1024//((C+127)//128)*8 + p//256%4*2 + p%2, \
         p//1024%((C+127)//128)*128 + p//2%128, \
         if_then_else(p//1024//((C+127)//128)*8 + p//256%4*2 + p%2 >= R or \
                      p//1024%((C+127)//128)*128 + p//2%128 >= C, 1, 0)]";
    vec![
        new("lambda n, h, w, c: [(((n*16 + c//4)*224 + h)*224 + w)*4 + c%4]", "32,224,224,64", "102760448")
            .inverse("lambda p: [p//3211264, p//896%224, p//4%224, p//200704%16*4 + p%4, 0]")
            .padded(&[0])
            .meaning("lambda n, h, w, c: [n*3211264 + c//4*200704 + h*896 + w*4 + c%4]")
            .done(),
        new("lambda n, h, w, c: [n, c//4, h, w, c%4]", "2,37,39,17", "2,5,37,39,4")
            .inverse("lambda n, o, h, w, i: [n, h, w, o*4 + i, if_then_else(17 <= o*4 + i, 1, 0)]")
            .done(),
        new("lambda i, j: [i*17 + j]", "100,15", "1700")
            .padded(&[0])
            .inverse("lambda p: [p//17, p%17, if_then_else(not (p%17 < 15), 1, 0)]")
            .done(),
        new("lambda i, j: [100 - i, j]", "101,23", "101,23").inverse("lambda p, q: [100 - p, q, 0]").done(),
        new("lambda i, j: [i, i%4, j]", "131,23", "131,4,23")
            .inverse("lambda p, q, r: [p, r, if_then_else(q != p%4, 1, 0)]")
            .done(),
        new("lambda i: [i >> 5, (i >> 2) & 7, i & 3]", "4096", "128,8,4")
            .inverse("lambda a, b, c: [a*32 + b*4 + c, 0]")
            .done(),
        new("lambda r, c: [r//8, c//128, r%8//2, c%128, r%8%2]", "1003,701", "126,6,4,128,2")
            .inverse(
                "lambda a, b, s, l, t: [a*8 + s*2 + t, b*128 + l, \
                 if_then_else(a*8 + s*2 + t >= 1003 or b*128 + l >= 701, 1, 0)]",
            )
            .done(),
        new(&flat, "N,H,W,C", &format!("N*{K}*H*W*4")).padded(&[0]).inverse(&flat_inverse).done(),
        new("lambda n, h, w, c: [n, c//4, h, w, c%4]", "N,H,W,C", &format!("N,{K},H,W,4"))
            .padded(&[4])
            .inverse("lambda n, o, h, w, i: [n, h, w, o*4 + i, if_then_else(o*4 + i >= C, 1, 0)]")
            .done(),
        new(tiled, "R,C", "((R+7)//8)*((C+127)//128)*1024").padded(&[0]).inverse(tiled_inverse).done(),
        new("lambda n, h, w, c: [n*H + h, AXIS_SEPARATOR, w*C + c]", "N,H,W,C", "N*H,W*C")
            .inverse("lambda y, x: [y//H, y%H, x//C, x%C, 0]")
            .meaning("lambda a, b, y, x: [b + a*H, AXIS_SEPARATOR, x + y*C]")
            .done(),
        new("lambda i: [i//32, i//4%8, i%4]", "N", "(N+31)//32,8,4")
            .padded(&[1, 2])
            .inverse("lambda a, b, c: [a*32 + b*4 + c, if_then_else(a*32 + b*4 + c >= N, 1, 0)]")
            .done(),
        new("lambda i: [i//B, i%B]", "N", "(N+B-1)//B,B")
            .padded(&[1])
            .inverse("lambda a, b: [a*B + b, if_then_else(a*B + b >= N, 1, 0)]")
            .done(),
        new("lambda i: [i//(B*D), i//D%B, i%D]", "N", "(N+B*D-1)//(B*D),B,D")
            .padded(&[1, 2])
            .inverse("lambda a, b, d: [(a*B + b)*D + d, if_then_else((a*B + b)*D + d >= N, 1, 0)]")
            .done(),
        new("lambda n, c: [(n*(C//4) + c//4)*4 + c%4]", "N,C", "N*C")
            .assuming("C % 4 == 0")
            .inverse("lambda p: [p//C, p%C, 0]")
            .done(),
        new("lambda i, j: [j*7 + i]", "7,W", "7*W").inverse("lambda p: [p%7, p//7, 0]").done(),
        // The digits of `c` lie apart, and the last block is not full: the largest sum is not that of the largest digits.
        new("lambda h, c: [(c//4*37 + h)*4 + c%4]", "37,1021", "37885")
            .inverse("lambda p: [p//4%37, p//148*4 + p%4, if_then_else(p//148*4 + p%4 >= 1021, 1, 0)]")
            .done(),
        // `(C+10)//11` is bounded by `C` only after a multiplication by 11.
        new("lambda n, h, c: [((n*((C+10)//11) + c//11)*157 + h)*11 + c%11]", "N,157,C", "N*((C+10)//11)*1727")
            .padded(&[0])
            .done(),
    ]
}

/// Maps and obligations that do not hold.
pub(crate) fn broken() -> Vec<(&'static str, Case)> {
    let read = Case::read;
    let floor = "lambda n, h, w, c: [(((n*(C//4) + c//4)*H + h)*W + w)*4 + c%4]";
    let flat = format!("lambda n, h, w, c: [(((n*{K} + c//4)*H + h)*W + w)*4 + c%4]");
    let swapped = format!("lambda n, h, w, c: [(((n*{K} + c//4)*W + h)*H + w)*4 + c%4]");
    let size = format!("N*{K}*H*W*4");
    vec![
        ("injective", read("lambda i, j: [i*16 + j]", "100,17", "1700")),
        ("injective", read("lambda i, j: [i + j]", "100,17", "1700")),
        ("injective", read("lambda i: [i//4, i%3]", "4096", "1024,3")),
        ("injective", read("lambda i: [i//4]", "4096", "1024")),
        ("injective", read("lambda i, j: [i//4, i%4]", "128,33", "32,4")),
        ("bounds", read("lambda i: [i//4, i%4]", "4097", "1024,4")),
        ("bounds", read("lambda i: [i//4, i%4 + 1]", "4096", "1024,4")),
        ("bounds", read("lambda i: [i - 1]", "4096", "4096")),
        ("bounds", read("lambda h, c: [(c//4*37 + h)*4 + c%4]", "37,1021", "37884")),
        ("bounds", read("lambda h, c: [(c//4*37 + h)*4 + c%4]", "37,1022", "37885")),
        ("bounds", read("lambda i: [i//4*3 + i%4]", "1022", "766")),
        ("overflow", read("lambda i, j: [(i*((J+10)//11)*11 + j)//11]", "I,J", "I*((J+10)//11) + 1")),
        ("tight", read("lambda i: [i//4, i%4]", "4096", "1025,4")),
        ("overflow", read("lambda i, j: [i*100000 + j]", "100000,100000", "10000000000")),
        ("injective", read(&swapped, "N,H,W,C", &size)),
        ("bounds", read(floor, "N,H,W,C", &size.replace(K, "(C//4)"))),
        ("injective", read(floor, "N,H,W,C", &size)),
        ("tight", read(&flat, "N,H,W,C", &size)),
        ("bounds", read(&flat, "N,H,W,C", &format!("N*{K}*H*W*3"))),
        ("injective", read("lambda i, j: [i*W + j]", "H,W+1", "H*(W+1)")),
        ("bounds", read("lambda i: [i//B, i%B]", "N", "N//B,B")),
        ("injective", read("lambda n, h: [n*N + h]", "N,H", "N*H + N*N")),
        ("padding", new("lambda i: [i//4, i%4]", "4097", "1025,4").inverse("lambda a, b: [a*4 + b, 0]").done()),
        (
            "padding",
            new("lambda i: [i//4, i%4]", "N", "(N+3)//4,4")
                .inverse("lambda a, b: [a*4 + b, if_then_else(a*4 + b >= N - 1, 1, 0)]")
                .done(),
        ),
        (
            "inverse",
            new("lambda i: [i//4, i%4]", "N", "(N+3)//4,4")
                .inverse("lambda a, b: [a*4 + b, if_then_else(a*4 + b > N, 1, 0)]")
                .done(),
        ),
        ("inverse", new("lambda i, j: [i*17 + j]", "100,15", "1700").inverse("lambda p: [p//17, p%17, 0]").done()),
        ("inverse", new("lambda i: [i//4, i%4]", "4096", "1024,4").inverse("lambda a, b: [b*1024 + a, 0]").done()),
    ]
}
