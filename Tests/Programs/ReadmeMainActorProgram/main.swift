import Alamofire

nonisolated struct Repository: Decodable, Sendable {
  let name: String
  let stargazers_count: Int
}

let url = "https://api.github.com/repos/swiftlang/swift"
let repository = try await AF.request(url).validate().serializingDecodable(Repository.self).value
print("\(repository.name) has \(repository.stargazers_count) stars.")
