/// Writes lines of header fields.
enum FieldLine {
  /// Appends name, separator, value and a line break. The line is put together on the stack, because a piece that is
  /// appended to an array costs as much as many bytes.
  static func append(
    _ name: UnsafeBufferPointer<UInt8>, _ separator: StaticString, _ value: UnsafeBufferPointer<UInt8>,
    to lines: inout [UInt8]
  ) {
    let separator = UnsafeBufferPointer(start: separator.utf8Start, count: separator.utf8CodeUnitCount)
    let size = name.count + separator.count + value.count + 2
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: size) { line in
      var end = line.initialize(fromContentsOf: name)
      end = line[end...].initialize(fromContentsOf: separator)
      end = line[end...].initialize(fromContentsOf: value)
      line[end] = UInt8(ascii: "\r")
      line[end + 1] = UInt8(ascii: "\n")
      lines.append(contentsOf: line)
    }
  }
}
