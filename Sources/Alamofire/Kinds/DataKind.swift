/// A request whose response is collected in memory. All its answers are the defaults.
struct DataKind: RequestKind {}
