import Alamofire

// Samples of Routing.md; see `SampleTests`.

private struct User: Codable, Sendable {
  var id: Int
  var name: String
}

private func show(_ value: Any) {}

private enum Endpoint: URLConvertible {
  case users
  case user(Int)

  func asURL() throws -> URL {
    let base = try "https://example.com/api/v1".asURL()
    switch self {
    case .users: return base.appendingPathComponent("users")
    case .user(let id): return base.appendingPathComponent("users/\(id)")
    }
  }
}

private func endpoints() {
  let list = AF.request(Endpoint.users, parameters: ["page": 2])
  let removed = AF.request(Endpoint.user(7), method: .delete)
  show((list, removed))
}

private enum UserRouter: URLRequestConvertible {
  case list(page: Int)
  case create(User)
  case rename(id: Int, to: String)
  case remove(id: Int)

  private var method: HTTPMethod {
    switch self {
    case .list: .get
    case .create: .post
    case .rename: .patch
    case .remove: .delete
    }
  }

  private var path: String {
    switch self {
    case .list, .create: "users"
    case .rename(let id, _), .remove(let id): "users/\(id)"
    }
  }

  func asURLRequest() throws -> URLRequest {
    let base = try "https://example.com/api/v1".asURL()
    let request = try URLRequest(url: base.appendingPathComponent(path), method: method)
    switch self {
    case .list(let page):
      return try URLEncodedFormParameterEncoder.default.encode(["page": page], into: request)
    case .create(let user):
      return try JSONParameterEncoder.default.encode(user, into: request)
    case .rename(_, let name):
      return try JSONParameterEncoder.default.encode(["name": name], into: request)
    case .remove:
      return request
    }
  }
}

private func router(user: User) async throws {
  let users = try await AF.request(UserRouter.list(page: 2))
    .validate()
    .serializingDecodable([User].self)
    .value
  _ = await AF.request(UserRouter.create(user)).validate().serializingData().response
  show(users)
}

private struct UserClient: Sendable {
  let session: Session

  func users(page: Int) async throws -> [User] {
    try await session.request(UserRouter.list(page: page))
      .validate()
      .serializingDecodable([User].self)
      .value
  }

  func remove(_ user: User) async throws {
    _ = try await session.request(UserRouter.remove(id: user.id))
      .validate()
      .serializingDecodable(Empty.self)
      .value
  }
}
