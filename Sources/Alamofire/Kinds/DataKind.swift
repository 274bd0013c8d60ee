/// A request whose response is kept in memory. All its answers are the defaults.
struct DataKind: RequestKind {}
