//! Changes of a text, by words and by bytes.
//!
//! A changed text is mostly near the original one, because the mistakes of readers are in what is nearly right: a number
//! that does not fit, a bracket too many, two names exchanged. Every change of every text is a text.

use arbitrary::Unstructured;

/// Words that a reader may not expect: numbers out of range, byte order marks, invalid UTF-8,
/// quotes and brackets.
const HOSTILE: [&[u8]; 34] = [
    b"4611686018427387904",
    b"-9223372036854775808",
    b"18446744073709551616",
    b"340282366920938463463374607431768211456",
    b"0",
    b"-1",
    b"1e309",
    b"0.1e-400",
    b"0x7fffffffffffffff",
    b"2147483648",
    b"1_000",
    b"\xEF\xBB\xBF",
    b"\0",
    b"\xFF\xFE",
    b"\xC3\xA9",
    b"\xE4\xB8\xAD\xE6\x96\x87",
    b"\xE2\x80\xAE",
    b"\r\n",
    b"\r",
    b"\t",
    b"\"",
    b"'",
    b"\\",
    b"#",
    b"(",
    b"]",
    b"{",
    b":",
    b"*",
    b"**",
    b"//0",
    b"lambda x: x",
    b"null",
    b"\\ud800",
];

/// Words that are repeated up to 1500 times, to nest deeply or to give very long words.
const REPEATED: [&str; 10] = ["(", "[", "{", "-", "x", "9", "lambda a: ", "a.", "[[0],", "\"k\": {"];

/// A change of a text. Positions are numbers of words or bytes, modulo how many there are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// Removes a word.
    Delete(u16),
    /// Repeats a word.
    Twice(u16),
    /// Exchanges two words.
    Swap(u16, u16),
    /// Replaces a word by another word of the text.
    Copy(u16, u16),
    /// Inserts a hostile word.
    Hostile(u16, usize),
    /// Replaces a word by a hostile one.
    Instead(u16, usize),
    /// Inserts a word of [`REPEATED`] many times.
    Repeat(u16, usize, u16),
    /// Replaces a byte.
    Byte(u16, u8),
    /// Removes a byte.
    DeleteByte(u16),
    /// Cuts the text.
    Truncate(u16),
    /// Ends lines with a carriage return, too.
    CarriageReturns,
    /// Inserts a byte order mark in front.
    Mark,
}

impl Change {
    /// Draws a change; changes of single words are the most frequent.
    pub(super) fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let (at, other) = (u.arbitrary()?, u.arbitrary()?);
        Ok(match u.int_in_range(0..=20)? {
            0 | 1 => Self::Delete(at),
            2 => Self::Twice(at),
            3 | 4 => Self::Swap(at, other),
            5..=7 => Self::Copy(at, other),
            8 | 9 => Self::Hostile(at, u.choose_index(HOSTILE.len())?),
            10..=13 => Self::Instead(at, u.choose_index(HOSTILE.len())?),
            14 => Self::Repeat(at, u.choose_index(REPEATED.len())?, other % 1500),
            15 | 16 => Self::Byte(at, u.arbitrary()?),
            17 => Self::DeleteByte(at),
            18 => Self::Truncate(at),
            19 => Self::CarriageReturns,
            _ => Self::Mark,
        })
    }

    /// The changed text. An empty text stays empty.
    pub(super) fn apply(self, bytes: Vec<u8>) -> Vec<u8> {
        let mut pieces: Vec<Vec<u8>> = words(&bytes).into_iter().map(<[u8]>::to_vec).collect();
        if pieces.is_empty() {
            return bytes;
        }
        // There is at least one word and one byte from here on, so no remainder below is by zero.
        let n_pieces = pieces.len();
        let place = |at: u16| usize::from(at) % n_pieces;
        match self {
            Self::Delete(at) => drop(pieces.remove(place(at))),
            Self::Twice(at) => pieces.insert(place(at), pieces[place(at)].clone()),
            Self::Swap(at, other) => {
                let (at, other) = (place(at), place(other));
                pieces.swap(at, other);
            }
            Self::Copy(at, other) => {
                let (at, other) = (place(at), place(other));
                let copy = pieces[other].clone();
                pieces[at] = copy;
            }
            Self::Hostile(at, which) => pieces.insert(place(at), HOSTILE[which].to_vec()),
            Self::Instead(at, which) => {
                let at = place(at);
                pieces[at] = HOSTILE[which].to_vec();
            }
            Self::Repeat(at, which, times) => {
                pieces.insert(place(at), REPEATED[which].repeat(usize::from(times)).into_bytes());
            }
            Self::Byte(at, byte) => {
                let mut bytes = bytes;
                let at = usize::from(at) % bytes.len();
                bytes[at] = byte;
                return bytes;
            }
            Self::DeleteByte(at) => {
                let mut bytes = bytes;
                bytes.remove(usize::from(at) % bytes.len());
                return bytes;
            }
            Self::Truncate(at) => {
                let mut bytes = bytes;
                bytes.truncate(usize::from(at) % bytes.len());
                return bytes;
            }
            Self::CarriageReturns => {
                return bytes.split_inclusive(|&byte| byte == b'\n').flat_map(with_return).collect();
            }
            Self::Mark => return [b"\xEF\xBB\xBF", bytes.as_slice()].concat(),
        }
        pieces.concat()
    }
}

/// A line that ends with a carriage return and a line feed.
fn with_return(line: &[u8]) -> Vec<u8> {
    match line.split_last() {
        Some((b'\n', rest)) => [rest, b"\r\n"].concat(),
        _ => line.to_vec(),
    }
}

/// The words of a text, without loss: names and numbers, runs of blanks, runs of non-ASCII bytes,
/// and every other byte by itself.
pub(super) fn words(bytes: &[u8]) -> Vec<&[u8]> {
    let kind = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => 0,
        b' ' => 1,
        128.. => 2,
        _ => 3,
    };
    bytes.chunk_by(|&a, &b| kind(a) == kind(b) && kind(a) != 3).collect()
}

/// The lines of a text including their ends.
pub(super) fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_all_of_the_text() {
        let text = "lambda i, j: [i//4, é_1]\r\n";
        let words = words(text.as_bytes());
        assert_eq!(words.concat(), text.as_bytes());
        assert_eq!(&words[..4], [b"lambda".as_slice(), b" ", b"i", b","]);
    }

    #[test]
    fn every_change_of_every_text_is_a_text() {
        for text in ["", "a", "f32[3,5]{1,0}", "\n"] {
            for seed in 0..400_u16 {
                let bytes: Vec<u8> = (0..16).flat_map(|k| (seed.wrapping_mul(4057 + k)).to_le_bytes()).collect();
                let change = Change::draw(&mut Unstructured::new(&bytes)).unwrap();
                assert!(change.apply(text.as_bytes().to_vec()).len() < 30_000);
            }
        }
    }
}
