// swift-tools-version:6.3
import PackageDescription

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .unsafeFlags(["-sanitize=fuzzer,address"]),
]

// The parsers of untrusted bytes, built with the coverage that libFuzzer needs. The sources are links to the library's,
// because the fuzzed functions are not public. Scripts/fuzz runs this package.
let package = Package(
  name: "fuzz",
  targets: [
    .target(name: "COpenSSL"),
    .systemLibrary(name: "CZlib"),
    .systemLibrary(name: "CBrotli"),
    .systemLibrary(name: "CZstd"),
    .systemLibrary(name: "CPSL"),
    .systemLibrary(name: "CNghttp2"),
    .target(name: "CLinux"),
    .target(name: "HTTPWire", swiftSettings: settings),
    .target(
      name: "HTTPSystem",
      dependencies: ["HTTPWire", "COpenSSL", "CZlib", "CBrotli", "CZstd", "CPSL", "CLinux"],
      swiftSettings: settings),
    .target(
      name: "HTTPEngine", dependencies: ["HTTPWire", "HTTPSystem", "COpenSSL", "CNghttp2", "CLinux"],
      swiftSettings: settings),
    // The readers of the command's files, which do not need the rest of the command.
    .target(name: "AFFiles", swiftSettings: settings),
    .target(name: "CVips", exclude: ["functions.h"], linkerSettings: [.linkedLibrary("dl")]),
    // The part of AlamofireImage that does not need Alamofire.
    .target(name: "ImageDecoding", dependencies: ["CVips"], swiftSettings: settings),
    .target(name: "CFuzzer"),
    .executableTarget(
      name: "fuzz",
      dependencies: ["HTTPWire", "HTTPSystem", "HTTPEngine", "AFFiles", "ImageDecoding", "CFuzzer"],
      swiftSettings: settings,
      // The default linker fails on the sections that the fuzzer adds.
      linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address", "-use-ld=lld"])]),
  ]
)
