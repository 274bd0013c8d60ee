import CFuzzer
import Glibc

/// `fuzz TARGET [argument of libFuzzer ...]`; the name of the target may come as `FUZZ_TARGET` instead, for the
/// processes that libFuzzer itself starts with its own arguments alone.
@main
enum Fuzz {
  // Set once, before libFuzzer calls back on this thread.
  nonisolated(unsafe) private static var target: Target = { _ in }

  static func main() {
    var rest = CommandLine.arguments
    // libFuzzer must not see the name of the target, which it would take for a folder.
    let variable = getenv("FUZZ_TARGET").map { String(cString: $0) }
    let name = variable ?? (rest.count > 1 ? rest.remove(at: 1) : nil)
    guard let name, let target = targets[name] else {
      print(targets.keys.sorted().joined(separator: "\n"))
      exit(name == nil ? 0 : 2)
    }
    self.target = target
    var count = Int32(rest.count)
    let pointers = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: rest.count + 1)
    for (index, argument) in rest.enumerated() { pointers[index] = strdup(argument) }
    pointers[rest.count] = nil
    var start: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = pointers
    exit(
      LLVMFuzzerRunDriver(&count, &start) { bytes, size in
        Fuzz.target(UnsafeRawBufferPointer(start: bytes, count: size))
        return 0
      })
  }
}
