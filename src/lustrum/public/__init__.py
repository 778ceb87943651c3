"""What is public: protected numbers, and the bundles and folders of prepared tables that hold them."""
