// swift-tools-version:6.3
import PackageDescription

// Programs to copy from. `Scripts/run` builds this package and runs the tour.
let package = Package(
  name: "examples",
  dependencies: [.package(name: "alamofire-linux", path: "..")],
  targets: [
    .executableTarget(
      name: "tour",
      dependencies: [
        .product(name: "Alamofire", package: "alamofire-linux"),
        .product(name: "AlamofireImage", package: "alamofire-linux"),
        .product(name: "HTTPTestServer", package: "alamofire-linux"),
      ]),
    .executableTarget(
      name: "get-json", dependencies: [.product(name: "Alamofire", package: "alamofire-linux")]),
    .executableTarget(
      name: "post-form", dependencies: [.product(name: "Alamofire", package: "alamofire-linux")]),
    .executableTarget(
      name: "concurrent", dependencies: [.product(name: "Alamofire", package: "alamofire-linux")]),
    .executableTarget(
      name: "watch", dependencies: [.product(name: "Alamofire", package: "alamofire-linux")]),
  ]
)
