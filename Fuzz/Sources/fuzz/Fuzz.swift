import CFuzzer
import Glibc

/// `fuzz TARGET [argument of libFuzzer ...]`
@main
enum Fuzz {
  // Set once, before libFuzzer calls back on this thread.
  nonisolated(unsafe) private static var target: Target = { _ in }

  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count > 1, let target = targets[arguments[1]] else {
      print(targets.keys.sorted().joined(separator: "\n"))
      exit(arguments.count > 1 ? 2 : 0)
    }
    self.target = target
    // libFuzzer must not see the name of the target, which it would take for a folder.
    let rest = [arguments[0]] + arguments.dropFirst(2)
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
