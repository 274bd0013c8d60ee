import CFuzzer
import Glibc

/// `fuzz TARGET [argument of libFuzzer ...]`. The name of the target can be in `FUZZ_TARGET` instead, for the processes
/// that libFuzzer starts with its own arguments only.
@main
enum Fuzz {
  // Set once, before libFuzzer calls the test function on this thread.
  nonisolated(unsafe) private static var target: Target = { _ in }

  static func main() {
    var rest = CommandLine.arguments
    // libFuzzer must not see the name of the target, because it would use it as the name of a folder.
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
