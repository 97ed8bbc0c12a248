//! CRC-32C (Castagnoli), eight bytes per step by tables ("slicing by 8").

/// The polynomial, bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[n][b]`: the checksum of byte `b` followed by `n` zeros.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut byte = 0;
    while byte < 256 {
        let mut zeros = 1;
        while zeros < 8 {
            let before = tables[zeros - 1][byte];
            tables[zeros][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            zeros += 1;
        }
        byte += 1;
    }
    tables
}

pub fn of(bytes: &[u8]) -> u32 {
    extend(0, bytes)
}

/// The checksum of bytes with the checksum `crc`, followed by these.
pub fn extend(crc: u32, bytes: &[u8]) -> u32 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut crc = !crc;
    for chunk in chunks {
        let [a, b, c, d] = (crc ^ u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]])).to_le_bytes();
        let [e, f, g, h] = [chunk[4], chunk[5], chunk[6], chunk[7]];
        crc = [a, b, c, d, e, f, g, h]
            .iter()
            .zip(TABLES.iter().rev())
            .fold(0, |crc, (byte, table)| crc ^ table[usize::from(*byte)]);
    }
    for byte in rest {
        crc = (crc >> 8) ^ TABLES[0][usize::from(crc as u8 ^ byte)];
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_the_standard_vector() {
        assert_eq!(of(b"123456789"), 0xe306_9283);
        assert_eq!(of(&[0; 32]), 0x8a91_36aa); // RFC 3720, B.4
        assert_eq!(extend(of(b"1234"), b"56789"), 0xe306_9283);
    }
}
