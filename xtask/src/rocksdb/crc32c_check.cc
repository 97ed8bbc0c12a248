// Checks CRC32c of a compiled library: the test vectors of RFC 3720, and every implementation against a bitwise one, for
// all lengths up to beyond the longest block that is processed at once, at all alignments and in parts. Prints the
// first difference and returns 1.

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace rocksdb {
namespace crc32c {
uint32_t Extend(uint32_t crc, const char* data, size_t size);
uint32_t Crc32cCombine(uint32_t crc1, uint32_t crc2, size_t size2);
std::string IsFastCrc32Supported();
}  // namespace crc32c
#if defined(__x86_64__)
namespace crc32c_portable {
uint32_t Extend(uint32_t crc, const char* data, size_t size);
}
namespace crc32c_sse42 {
uint32_t Extend(uint32_t crc, const char* data, size_t size);
}
#endif
}  // namespace rocksdb

typedef uint32_t (*ExtendFunction)(uint32_t, const char*, size_t);

static uint32_t Bitwise(uint32_t crc, const char* data, size_t size) {
  crc = ~crc;
  for (size_t at = 0; at < size; at++) {
    crc ^= static_cast<uint8_t>(data[at]);
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc;
}

static bool Equal(const char* name, const char* what, size_t size, size_t offset, uint32_t found, uint32_t expected) {
  if (found == expected) return true;
  std::printf("%s: %s, %zu bytes at offset %zu: %08x instead of %08x\n", name, what, size, offset, found, expected);
  return false;
}

// RFC 3720, B.4.
static bool Vectors(const char* name, ExtendFunction extend) {
  std::string zeros(32, '\0'), ones(32, '\xff'), up, down;
  for (int n = 0; n < 32; n++) {
    up.push_back(static_cast<char>(n));
    down.push_back(static_cast<char>(31 - n));
  }
  const uint8_t read[48] = {0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0,
                            0,    0,    0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0};
  std::string pdu(reinterpret_cast<const char*>(read), sizeof read);
  const struct {
    const char* what;
    const std::string& bytes;
    uint32_t crc;
  } vectors[] = {{"zeros", zeros, 0x8a9136aa}, {"ones", ones, 0x62a8ab43},          {"incrementing", up, 0x46dd794e},
                 {"decrementing", down, 0x113fdb5c}, {"read command", pdu, 0xd9963a56}};
  for (const auto& vector : vectors) {
    uint32_t found = extend(0, vector.bytes.data(), vector.bytes.size());
    if (!Equal(name, vector.what, vector.bytes.size(), 0, found, vector.crc)) return false;
  }
  return true;
}

static bool Lengths(const char* name, ExtendFunction extend) {
  const size_t lengths_max = 2500, offsets = 17;
  std::vector<char> bytes(200000);
  uint32_t random = 1;
  for (char& byte : bytes) byte = static_cast<char>((random = random * 1664525 + 1013904223) >> 24);
  for (size_t offset = 0; offset < offsets; offset++) {
    const char* data = bytes.data() + offset;
    uint32_t expected = 0;
    for (size_t size = 0; size <= lengths_max; size++) {
      if (!Equal(name, "whole", size, offset, extend(0, data, size), expected)) return false;
      size_t half = size / 3;
      uint32_t parts = extend(extend(0, data, half), data + half, size - half);
      if (!Equal(name, "in parts", size, offset, parts, expected)) return false;
      expected = Bitwise(expected, data + size, 1);
    }
    for (size_t size : {4095, 4096, 8191, 12345, 65536, 98304, 199000}) {
      if (!Equal(name, "long", size, offset, extend(7, data, size), Bitwise(7, data, size))) return false;
    }
  }
  for (size_t size : {0, 1, 7, 64, 5000}) {
    uint32_t first = extend(0, bytes.data(), 100), second = extend(0, bytes.data() + 100, size);
    uint32_t combined = rocksdb::crc32c::Crc32cCombine(first, second, size);
    if (!Equal(name, "combined", size, 100, combined, Bitwise(0, bytes.data(), 100 + size))) return false;
  }
  return true;
}

static bool Check(const char* name, ExtendFunction extend) { return Vectors(name, extend) && Lengths(name, extend); }

int main() {
  bool ok = Check("bitwise", Bitwise) && Check("chosen", rocksdb::crc32c::Extend);
#if defined(__x86_64__)
  ok = ok && Check("portable", rocksdb::crc32c_portable::Extend);
  bool has_sse42 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
  if (has_sse42) ok = ok && Check("SSE4.2", rocksdb::crc32c_sse42::Extend);
  bool is_chosen = rocksdb::crc32c::IsFastCrc32Supported().rfind("Supported", 0) == 0;
  if (is_chosen != has_sse42) {
    std::printf("SSE4.2 is %s, and %s\n", has_sse42 ? "there" : "not there", is_chosen ? "used" : "not used");
    ok = false;
  }
#endif
  return ok ? 0 : 1;
}
