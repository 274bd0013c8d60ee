import Foundation

/// Facts about a file that must be known before libvips reads it, because libvips takes too long to find them or does
/// not limit them. The functions walk through a file in the order of the library that decodes it.
enum FileStructure {
  /// Counts the frames of an animated WebP file (RFC 9649 §2.7.1.1); 0 if it is not animated.
  ///
  /// libwebp reads the head of a frame and its images, and takes what follows for the next chunk, also within the size
  /// of the frame.
  static func frames(ofWebP bytes: UnsafeRawBufferPointer) -> Int {
    var count = 0
    var place = 12
    while place + 8 <= bytes.count {
      let isFrame = bytes[place..<place + 4].elementsEqual("ANMF".utf8)
      if isFrame { count += 1 }
      let size = (0..<4).reduce(0) { $0 | Int(bytes[place + 4 + $1]) << (8 * $1) }
      place += 8 + (isFrame ? min(16, size + size % 2) : size + size % 2)
    }
    return count
  }

  /// Counts the scans of a JPEG file, and its segments for applications and comments (ITU-T T.81 §B.1.1), in the way in
  /// which libjpeg reads them.
  ///
  /// Each scan is decoded for all pixels, which takes time even if it has few bytes. libjpeg appends each segment to a
  /// list that it walks through from its beginning, as soon as libvips opens the file.
  ///
  /// - Parameters:
  ///   - endsAtScan: Whether only what is before the samples is read, and the first scan counted.
  ///   - read: Returns up to so many bytes at a place of the file.
  static func parts(
    ofJPEG read: (_ place: Int, _ count: Int) throws(ImageError) -> [UInt8], endsAtScan: Bool = false
  ) throws(ImageError) -> (scans: Int, segments: Int) {
    var (scans, segments) = (0, 0)
    var place = 2
    var block: [UInt8] = []
    var start = 0
    while true {
      if place + 4 > start + block.count { (block, start) = (try read(place, 65_536), place) }
      let head = place - start
      guard head + 4 <= block.count else { return (scans, segments) }
      guard block[head] == 0xff else {
        place += 1
        continue
      }
      let marker = block[head + 1]
      switch marker {
      case 0xd9: return (scans, segments)
      // A reserved marker has no length: libjpeg ignores it before a restart marker, and fails everywhere else.
      case 0x00...0xbf, 0xd0...0xd8: place += 2
      case 0xff: place += 1
      default:
        if marker == 0xda { scans += 1 }
        if marker == 0xda, endsAtScan { return (scans, segments) }
        if (0xe0...0xef).contains(marker) || marker == 0xfe { segments += 1 }
        place += 2 + max(2, Int(block[head + 2]) << 8 | Int(block[head + 3]))
      }
    }
  }

  /// Returns the most bytes that the texts and the colour profile of a PNG file can take once they are decompressed
  /// (PNG §11.3). libvips decompresses them as soon as it opens the file.
  ///
  /// - Parameter read: Returns up to so many bytes at a place of the file.
  static func textSize(
    ofPNG read: (_ place: Int, _ count: Int) throws(ImageError) -> [UInt8]
  ) throws(ImageError) -> Int {
    var sum = 0
    var place = 8
    var block: [UInt8] = []
    var start = 0
    while true {
      // The head of a chunk, and as much of its content as is looked at.
      if place + 96 > start + block.count { (block, start) = (try read(place, 65_536), place) }
      let head = place - start
      guard head + 8 <= block.count else { return sum }
      let length = number(block[head..<head + 4])
      sum += textSize(ofChunk: number(block[head + 4..<head + 8]), length, block[(head + 8)...])
      place += 12 + length
    }
  }

  private static func number(_ bytes: some Sequence<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

  /// Returns the most bytes of one chunk of a PNG file after its decompression.
  private static func textSize(ofChunk kind: Int, _ length: Int, _ content: ArraySlice<UInt8>) -> Int {
    // libpng makes no chunk longer than this. DEFLATE makes at most 1,032 bytes of one.
    let decompressed = min(8_000_000, length * 1032)
    switch kind {
    case 0x7A54_5874, 0x6943_4350: return decompressed  // zTXt, iCCP
    case 0x6954_5874:  // iTXt
      // A keyword of at most 79 bytes, its end, and whether the text is compressed.
      guard let end = content.prefix(80).firstIndex(of: 0), end + 1 < content.endIndex else {
        return decompressed
      }
      return content[end + 1] == 0 ? length : decompressed
    case 0x7445_5874: return length  // tEXt
    default: return 0
    }
  }

  /// Returns the size of the tiles of the first image of a TIFF file (TIFF 6.0 §15); `nil` without tiles. A whole tile
  /// is decoded, even if the image is smaller.
  ///
  /// - Throws: ``ImageError/unsupportedFormat(_:)`` if the image is compressed in a way that is not read.
  static func tile(ofTIFF bytes: UnsafeRawBufferPointer) throws(ImageError) -> (width: Int, height: Int)? {
    var directory = try TIFFDirectory(bytes)
    var tile: (width: Int, height: Int)?
    var hasJPEG = false
    while let entry = directory?.next() {
      switch entry.tag {
      case 259:
        // A tag can be there twice. Each must be one number of 16 or 32 bits, which all readers read in the same way.
        guard entry.count == 1, entry.type == 3 || entry.type == 4 else { throw .unsupportedFormat(.tiff) }
        if entry.value == 7 {
          hasJPEG = true
        } else if !compressionsOfTIFF.contains(entry.value) {
          throw .unsupportedFormat(.tiff)
        }
      case 322: tile = (max(tile?.width ?? 0, entry.value), tile?.height ?? 1)
      case 323: tile = (tile?.width ?? 1, max(tile?.height ?? 0, entry.value))
      default: break
      }
    }
    // libvips decodes tiles of JPEG itself, with any number of scans. libtiff decodes strips, and stops at 100.
    guard tile == nil || !hasJPEG else { throw .unsupportedFormat(.tiff) }
    return tile
  }

  /// The compressions of TIFF that are read, apart from JPEG: none, CCITT, LZW, Deflate and PackBits. libvips decodes
  /// JPEG 2000 itself, and writes as many samples as its data have, beyond the memory of a tile.
  private static let compressionsOfTIFF: Set = [1, 2, 3, 4, 5, 8, 32_946, 32_773]

  /// Returns the most bytes that libtiff takes for the values of the first directory of a TIFF file. It copies the
  /// values of all entries, and several can name the same bytes of the file.
  static func valueSize(ofTIFF bytes: UnsafeRawBufferPointer) throws(ImageError) -> Int {
    var directory = try TIFFDirectory(bytes)
    var sum = 0
    while let entry = directory?.next() {
      let size = TIFFDirectory.size(ofType: entry.type).bytes
      // The places and lengths of strips and tiles become numbers of 64 bits.
      let kept = [273, 279, 324, 325].contains(entry.tag) ? 8 : size
      // Of more values than are in the file, none is kept.
      sum += min(entry.count, bytes.count / size) * kept
    }
    return sum
  }

  /// Removes all images but the first from a TIFF file, as no other is decoded. libvips would read the directories of
  /// all when it opens the file, to count them, and libtiff takes long for one with many tags or strips.
  static func removeLaterImages(ofTIFF data: inout Data) throws(ImageError) {
    func link(_ data: Data) throws(ImageError) -> Range<Int>? {
      try data.withBytes { bytes throws(ImageError) -> Range<Int>? in try TIFFDirectory(bytes)?.link }
    }
    guard let place = try link(data) else { return }
    // Copied, because the caller may still have the bytes, or have lent them.
    var copy = data.withUnsafeBytes { Data($0) }
    copy.resetBytes(in: place)
    data = copy
    // The link can be a part of the head of the file, so that another directory is the first one now.
    guard try link(data) == nil else { throw .unsupportedFormat(.tiff) }
  }

  /// Returns whether a colour profile (ICC.1:2010 §7.2.6) is one for samples of this count, with or without alpha, that
  /// lcms2 reads in little time and memory. No limit holds while libvips lets it do so.
  static func profile(_ profile: UnsafeRawBufferPointer, fits bands: Int) -> Bool {
    guard profile.count <= 8 << 20, hasPlainTags(profile) else { return false }
    switch String(decoding: profile[16..<20], as: UTF8.self) {
    case "GRAY": return bands <= 2
    case "RGB ": return bands == 3 || bands == 4
    case "CMYK": return bands >= 4
    default: return false
    }
  }

  /// Returns whether a colour profile has a complete table of tags (ICC.1:2010 §7.3), none of which has elements, and
  /// whose tables of colours are complete.
  ///
  /// Elements (§10.14) can name the same curves any number of times, and lcms2 prefers them to all other tags. It takes
  /// memory for a table of colours by its head, before it notices that the table is not there.
  private static func hasPlainTags(_ profile: UnsafeRawBufferPointer) -> Bool {
    guard profile.count >= 132 else { return false }
    let count = number(profile[128..<132])
    // lcms2 does not read more.
    guard count <= 100, 132 + 12 * count <= profile.count else { return false }
    return (0..<count).allSatisfy { index in
      let entry = profile[(132 + 12 * index)..<(144 + 12 * index)]
      let name = String(decoding: entry.prefix(4), as: UTF8.self)
      let tag = UnsafeRawBufferPointer(rebasing: profile.dropFirst(number(entry.dropFirst(4).prefix(4))))
      return !name.hasPrefix("D2B") && !name.hasPrefix("B2D") && tableSize(ofTag: tag) <= tag.count
    }
  }

  /// Returns the bytes of a tag in a colour profile up to the end of its table of colours (ICC.1:2010 §10.8 to §10.11),
  /// as its head says; 0 for a tag without one.
  private static func tableSize(ofTag tag: UnsafeRawBufferPointer) -> Int {
    func value(_ place: Int, _ count: Int = 1) -> Int { number(tag.dropFirst(place).prefix(count)) }
    let (inputs, outputs) = (value(8), value(9))
    /// Multiplies the sides of the table, up to more than there can be.
    func colours(_ side: (Int) -> Int) -> Int { (0..<inputs).reduce(1) { min($0 * side($1), 1 << 32) } }
    switch String(decoding: tag.prefix(4), as: UTF8.self) {
    case "mft1": return 48 + 256 * (inputs + outputs) + outputs * colours { _ in value(10) }
    case "mft2":
      let table = outputs * colours { _ in value(10) }
      return 52 + 2 * (inputs * value(48, 2) + table + outputs * value(50, 2))
    case "mAB ", "mBA ":
      let table = value(24, 4)
      guard table > 0 else { return 0 }
      return table + 20 + max(1, value(table + 16)) * outputs * colours { value(table + $0) }
    default: return 0
    }
  }
}

/// The entries of the first directory of a TIFF file, in its form with 32 or with 64 bits (BigTIFF).
private struct TIFFDirectory {
  private let bytes: UnsafeRawBufferPointer
  private let isLittleEndian: Bool
  private let is64Bit: Bool
  private var place = 0
  private var entriesLeft = 0
  /// The place of the link to the next directory, unless there is none.
  private(set) var link: Range<Int>?

  /// Finds the directory; `nil` if there is none.
  ///
  /// - Throws: ``ImageError/limitExceeded(_:limit:actual:)`` if it has too many entries. libtiff compares each with all
  ///   others, and sorts a list for each tag that it does not know.
  init?(_ bytes: UnsafeRawBufferPointer) throws(ImageError) {
    guard bytes.count >= 16 else { return nil }
    self.bytes = bytes
    isLittleEndian = bytes[0] == UInt8(ascii: "I")
    is64Bit = bytes[isLittleEndian ? 2 : 3] == 43
    guard let start = number(at: is64Bit ? 8 : 4, is64Bit ? 8 : 4),
      let count = number(at: start, is64Bit ? 8 : 2)
    else { return nil }
    guard count <= 1_000 else { throw .limitExceeded(.tags, limit: 1_000, actual: count) }
    place = start + (is64Bit ? 8 : 2)
    entriesLeft = count
    let end = place + count * (is64Bit ? 20 : 12)
    let size = is64Bit ? 8 : 4
    // Without a directory there, libtiff ends the list, and the bytes may not be a link at all.
    if let next = number(at: end, size), next != 0, let count = number(at: next, is64Bit ? 8 : 2),
      (1...4_096).contains(count)
    {
      link = end..<end + size
    }
  }

  /// Returns the next entry: its tag, the type and the count of its values, and the first of them.
  mutating func next() -> (tag: Int, type: Int, count: Int, value: Int)? {
    guard entriesLeft > 0, let tag = number(at: place, 2), let type = number(at: place + 2, 2),
      let count = number(at: place + 4, is64Bit ? 8 : 4)
    else { return nil }
    entriesLeft -= 1
    var value = place + (is64Bit ? 12 : 8)
    let size = Self.size(ofType: type)
    // A value that is too long for the entry is elsewhere.
    if size.isInteger, size.bytes == 8, !is64Bit { value = number(at: value, 4) ?? bytes.count }
    place += is64Bit ? 20 : 12
    return (tag, type, count, size.isInteger ? number(at: value, size.bytes) ?? 0 : 0)
  }

  /// Returns how many bytes a value of a type has (TIFF 6.0 §2, and BigTIFF), and whether it is an integer. A type that
  /// is not known counts as a large one.
  static func size(ofType type: Int) -> (bytes: Int, isInteger: Bool) {
    switch type {
    case 1, 6: (1, true)
    case 2, 7: (1, false)
    case 3, 8: (2, true)
    case 4, 9, 13: (4, true)
    case 11: (4, false)
    case 16, 17: (8, true)
    default: (8, false)
    }
  }

  /// Returns an unsigned number; `nil` if it is not in the file, or as a number too large to be a place in it.
  private func number(at place: Int, _ size: Int) -> Int? {
    guard place >= 0, place <= bytes.count - size else { return nil }
    var number: UInt64 = 0
    for index in 0..<size {
      number = number << 8 | UInt64(bytes[place + (isLittleEndian ? size - 1 - index : index)])
    }
    return Int(clamping: number)
  }
}
