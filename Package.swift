// swift-tools-version:6.3
import PackageDescription

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

// Code as users of Alamofire write it: in both language modes, and beside each set of other imports. The
// targets share their files, which are found through links.
let sourceCompatibility: [Target] = [("Swift5", SwiftLanguageMode.v5), ("Swift6", .v6)].flatMap {
  name, mode in
  [
    ("", nil), ("Foundation", "IMPORTS_FOUNDATION"),
    ("FoundationNetworking", "IMPORTS_FOUNDATION_NETWORKING"),
  ]
  .map { imports, condition in
    .testTarget(
      name: "SourceCompatibility\(name)\(imports)", dependencies: ["Alamofire", "HTTPTestServer"],
      path: "Tests/SourceCompatibility/Targets/\(name)\(imports)",
      swiftSettings: [.swiftLanguageMode(mode)] + (condition.map { [.define($0)] } ?? []))
  }
}

// The walls between the targets are listed, with their reasons, in Documentation/Architecture.md;
// Scripts/imports holds every import line of the sources against them.
let package = Package(
  name: "alamofire-linux",
  products: [
    .library(name: "Alamofire", targets: ["Alamofire"]),
    .library(name: "AlamofireV4", targets: ["AlamofireV4"]),
    .library(name: "AlamofireV3", targets: ["AlamofireV3"]),
    .library(name: "AlamofireImage", targets: ["AlamofireImage"]),
    .library(name: "HTTPTestServer", targets: ["HTTPTestServer"]),
    .executable(name: "af", targets: ["af"]),
  ],
  targets: [
    .systemLibrary(
      name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"]), .yum(["zlib-devel"])]),
    .systemLibrary(
      name: "CBrotli", pkgConfig: "libbrotlidec",
      providers: [.apt(["libbrotli-dev"]), .yum(["brotli-devel"])]),
    .systemLibrary(
      name: "CZstd", pkgConfig: "libzstd",
      providers: [.apt(["libzstd-dev"]), .yum(["libzstd-devel"])]),
    .systemLibrary(
      name: "CPSL", pkgConfig: "libpsl", providers: [.apt(["libpsl-dev"]), .yum(["libpsl-devel"])]),
    .systemLibrary(
      name: "CNghttp2", pkgConfig: "libnghttp2",
      providers: [.apt(["libnghttp2-dev"]), .yum(["libnghttp2-devel"])]),
    .target(name: "CLinux"),
    .systemLibrary(
      name: "COpenSSLPackage", pkgConfig: "openssl",
      providers: [.apt(["libssl-dev"]), .yum(["openssl-devel"])]),
    // With its own line that runs before `main`, so it cannot be a system library itself.
    .target(name: "COpenSSL", dependencies: ["COpenSSLPackage"]),

    .target(name: "HTTPWire", swiftSettings: settings),
    .target(
      name: "HTTPSystem",
      dependencies: ["HTTPWire", "COpenSSL", "CZlib", "CBrotli", "CZstd", "CPSL", "CLinux"],
      swiftSettings: settings),
    .target(
      name: "HTTPEngine", dependencies: ["HTTPWire", "HTTPSystem", "COpenSSL", "CNghttp2", "CLinux"],
      swiftSettings: settings),
    .target(
      name: "Alamofire", dependencies: ["HTTPWire", "HTTPSystem", "HTTPEngine"], swiftSettings: settings),
    // The older generations. Without package access, they prove that the public API of Alamofire is enough for them.
    // The code that they share is found through links.
    .target(
      name: "AlamofireV4", dependencies: ["Alamofire"], path: "Sources/Generations/V4", packageAccess: false,
      swiftSettings: settings),
    .target(
      name: "AlamofireV3", dependencies: ["Alamofire"], path: "Sources/Generations/V3", packageAccess: false,
      swiftSettings: settings),
    // It loads libvips when it runs. A system library would tell everyone who uses this package to install libvips.
    .target(name: "CVips", exclude: ["functions.h"], linkerSettings: [.linkedLibrary("dl")]),
    .target(
      name: "AlamofireImage", dependencies: ["Alamofire", "CVips"], packageAccess: false,
      swiftSettings: settings),
    .target(
      name: "HTTPTestServer", dependencies: ["HTTPWire", "COpenSSL", "CZlib"],
      swiftSettings: settings),
    .target(name: "AFCommand", dependencies: ["Alamofire", "AlamofireImage"], swiftSettings: settings),
    .executableTarget(name: "af", dependencies: ["AFCommand"], swiftSettings: settings),

    // The random numbers of tests.
    .target(name: "Randomness", path: "Tests/Randomness", swiftSettings: settings),
    // The steps of tests, probes of released objects, and hostile documents.
    .target(name: "Scenarios", dependencies: ["HTTPWire"], path: "Tests/Scenarios", swiftSettings: settings),
    // Programs that tests run.
    .target(
      name: "ChildProcesses", dependencies: ["HTTPWire"], path: "Tests/ChildProcesses",
      swiftSettings: settings),
    .testTarget(
      name: "HTTPWireTests", dependencies: ["HTTPWire", "ChildProcesses", "Randomness", "Scenarios"],
      swiftSettings: settings),
    .testTarget(
      name: "HTTPTestServerTests", dependencies: ["HTTPTestServer", "COpenSSL"],
      swiftSettings: settings),
    .testTarget(
      name: "HTTPSystemTests",
      dependencies: ["HTTPSystem", "HTTPTestServer", "ChildProcesses", "COpenSSL", "Randomness"],
      swiftSettings: settings),
    .testTarget(
      name: "HTTPEngineTests",
      dependencies: [
        "HTTPEngine", "HTTPSystem", "HTTPTestServer", "ChildProcesses", "COpenSSL", "Randomness",
        "Scenarios",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "AlamofireTests",
      dependencies: [
        "Alamofire", "HTTPSystem", "HTTPWire", "HTTPTestServer", "ChildProcesses", "Randomness", "Scenarios",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "IntegrationTests",
      dependencies: ["Alamofire", "ChildProcesses", "HTTPTestServer", "Randomness", "Scenarios"],
      swiftSettings: settings),
    .testTarget(
      name: "AlamofireImageTests",
      dependencies: [
        "Alamofire", "AlamofireImage", "CVips", "ChildProcesses", "HTTPTestServer", "Randomness", "Scenarios",
      ],
      swiftSettings: settings),
    // What IntegrationTests and Scripts/soak measure: a separate process, undisturbed by other work.
    .executableTarget(
      name: "SoakClient", dependencies: ["Alamofire"], path: "Tests/SoakClient", swiftSettings: settings),
    .testTarget(
      name: "AlamofireV4Tests", dependencies: ["Alamofire", "AlamofireV4", "HTTPTestServer", "Scenarios"],
      path: "Tests/Generations/V4Tests", swiftSettings: settings),
    .testTarget(
      name: "AlamofireV3Tests", dependencies: ["Alamofire", "AlamofireV3", "HTTPTestServer", "Scenarios"],
      path: "Tests/Generations/V3Tests", swiftSettings: settings),
    // The first screen of the README, as a program of its readers: with the defaults, and isolated to the main actor.
    .executableTarget(
      name: "ReadmeProgram", dependencies: ["Alamofire"],
      path: "Tests/Programs/ReadmeProgram"),
    .executableTarget(
      name: "ReadmeMainActorProgram", dependencies: ["Alamofire"],
      path: "Tests/Programs/ReadmeMainActorProgram",
      swiftSettings: [.defaultIsolation(MainActor.self)]),
    // The samples of documents and doc comments, which Scripts/samples writes as Swift files.
    .plugin(name: "SampleGenerator", capability: .buildTool(), path: "Tests/SampleGenerator"),
    .testTarget(
      name: "Samples", dependencies: ["Alamofire", "AlamofireImage", "HTTPTestServer", "HTTPWire"],
      path: "Tests/Samples",
      swiftSettings: settings, plugins: ["SampleGenerator"]),
    // Who answers the samples of the older generations.
    .target(
      name: "SampleServers", dependencies: ["ChildProcesses", "HTTPTestServer", "HTTPWire"],
      path: "Tests/Generations/SampleServers", swiftSettings: settings),
    // What the documents of the older generations show, as their readers wrote it: in the mode of Swift 5.
    .testTarget(
      name: "AlamofireV4Samples", dependencies: ["AlamofireV4", "HTTPTestServer", "SampleServers"],
      path: "Tests/Generations/V4Samples", swiftSettings: [.swiftLanguageMode(.v5)],
      plugins: ["SampleGenerator"]),
    .testTarget(
      name: "AlamofireV3Samples", dependencies: ["AlamofireV3", "HTTPTestServer", "SampleServers"],
      path: "Tests/Generations/V3Samples", swiftSettings: [.swiftLanguageMode(.v5)],
      plugins: ["SampleGenerator"]),
    .testTarget(
      name: "AFCommandTests",
      dependencies: [
        "AFCommand", "Alamofire", "AlamofireImage", "ChildProcesses", "HTTPSystem", "HTTPTestServer",
        "HTTPWire", "Randomness",
        "Scenarios", "af",
      ],
      swiftSettings: settings),
  ] + sourceCompatibility
)
