//===- ZipArchive.h - the one reader of zip archives ----------------------------------------------------*- C++ -*-===//
//
// PyTorch's archives (.pt, .pt2) and NumPy's (.npz): members stored as they are, which can be mapped, or deflated. The
// bytes stay alive and unchanged as long as the reader does. Every offset is checked and nothing is unpacked before it
// is asked for, so any byte string is safe to give. Zip64, data descriptors and extra fields are understood; members
// that share bytes or names, which make two readers see two archives, are refused. Source: PKWARE APPNOTE 6.3.10,
// sections 4.3 to 4.5.
//
// C++ alone, as tools without LLVM read archives, too. Errors say what is wrong, without the file's name.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_ZIPARCHIVE_H
#define TC_SUPPORT_ZIPARCHIVE_H

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tc {

/// The CRC-32 that members have.
uint32_t zipChecksum(std::string_view bytes);

class ZipArchive {
public:
  struct Member {
    std::string_view name;
    uint64_t header = 0;     ///< where its own header stands
    uint64_t offset = 0;     ///< of its data, from the start of the archive
    uint64_t packedSize = 0; ///< bytes from `offset`
    uint64_t size = 0;       ///< bytes unpacked, as the directory says
    uint32_t checksum = 0;
    uint16_t method = 0;
    bool isEncrypted = false;

    /// Stored as it is, so that its bytes are a range of the archive.
    bool isStored() const { return method == 0 && !isEncrypted; }
  };

  /// The bytes of a member: a range of the archive, or unpacked ones that this owns.
  class Contents {
  public:
    std::string_view text() const { return view; }
    operator std::string_view() const { return view; }

  private:
    friend class ZipArchive;
    std::string_view view;
    std::unique_ptr<char[]> owned;
  };

  /// What one member may unpack to where nobody says another limit.
  static constexpr uint64_t kMaxUnpacked = uint64_t(1) << 32;

  /// Reads the directory.
  static std::optional<ZipArchive> open(std::string_view bytes, std::string &error);

  /// In the directory's order.
  const std::vector<Member> &members() const { return all; }
  /// Null if there is no member of this name.
  const Member *find(std::string_view name) const;
  /// The first member whose name ends with `suffix`, in the order of names; null if there is none.
  const Member *findSuffix(std::string_view suffix) const;

  /// A stored member's bytes. Their checksum is not looked at: weights are mapped, and read when they are needed.
  std::string_view stored(const Member &member) const { return bytes.substr(member.offset, member.size); }
  /// A member's bytes, stored or deflated, with its checksum checked. (PyTorch can write stored members without one:
  /// it is 0 then.)
  std::optional<Contents> read(const Member &member, std::string &error, uint64_t limit = kMaxUnpacked) const;
  /// The first `size` bytes of a deflated member, without its checksum; `size` is the member's at most.
  bool unpack(const Member &member, char *to, uint64_t size, std::string &error) const;
  /// Whether tc can read the member; the error says why it can't. Memory is not asked for.
  static bool isReadable(const Member &member, std::string &error);

private:
  std::string_view bytes;
  std::vector<Member> all;
  std::vector<size_t> byName; // numbers of `all`
};

} // namespace tc

#endif // TC_SUPPORT_ZIPARCHIVE_H
